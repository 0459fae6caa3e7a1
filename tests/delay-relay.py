# SPDX-License-Identifier: BSD-3-Clause
# A long way to a server: delay-relay.py PORT MS.  Listens on a port of 127.0.0.1, prints the port,
# and passes bytes on to PORT and back, each way MS milliseconds late.  What this test is about is
# that time: nothing waits for it.
import asyncio, sys

port, delay_s = int(sys.argv[1]), float(sys.argv[2]) / 1000


async def pass_on(reader, writer):
	"""Each piece, and the end, late by the same time, however many are on their way."""
	loop, way = asyncio.get_running_loop(), asyncio.Queue()

	async def arrive():
		while True:
			due, piece = await way.get()
			await asyncio.sleep(max(0, due - loop.time()))
			if not piece:
				break
			writer.write(piece)
			await writer.drain()

	arrivals = asyncio.create_task(arrive())
	piece = b"?"
	while piece:
		try:
			piece = await reader.read(65536)
		except ConnectionError:
			piece = b""
		way.put_nowait((loop.time() + delay_s, piece))
	try:
		await arrivals
	except ConnectionError:
		pass
	writer.close()


async def serve(reader, writer):
	there = await asyncio.open_connection("127.0.0.1", port)
	await asyncio.gather(pass_on(reader, there[1]), pass_on(there[0], writer))


async def main():
	server = await asyncio.start_server(serve, "127.0.0.1", 0)
	print(server.sockets[0].getsockname()[1], flush=True)
	await server.serve_forever()

asyncio.run(main())
