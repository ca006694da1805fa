"""The same calls in coroutines."""

import asyncio
import tempfile

from windrow import aio


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with await aio.open(folder, merge_operators={"counts": "windrow.add_u64.wrapping"}) as db:
            counts = await db.keyspace("counts")
            one = (1).to_bytes(8, "little")
            await asyncio.gather(*(counts.merge(b"visits", one) for _ in range(100)))
            async for name, count in counts.items():
                print(name, int.from_bytes(count, "little"))


asyncio.run(main())
