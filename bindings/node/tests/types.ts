// A user's program, which tsc checks and nobody runs.

import { Backups, Durability, OpenOptions, Secondary, WindrowLevel } from 'windrow'

export async function main (): Promise<void> {
  const durability: Durability = 'sync'
  const options: OpenOptions = { durability, memoryBudget: 64 << 20, keyspace: { compression: 'none' } }
  const db = new WindrowLevel<string, { moons: number }>('folder', { valueEncoding: 'json', ...options })
  await db.open()
  await db.put('earth', { moons: 1 }, { sync: true })
  const moons: number | undefined = (await db.get('earth'))?.moons ?? db.getSync('earth')?.moons
  // @ts-expect-error: a value is not a string.
  await db.put('mars', 'two')
  // @ts-expect-error: there is no such durability.
  await db.open({ durability: 'never' })
  const bytes = await db.get<Uint8Array, Buffer>(Uint8Array.of(1), { keyEncoding: 'view', valueEncoding: 'buffer' })
  await db.batch().put('mars', { moons: 2 }).del('earth').write({ sync: true })
  await db.batch([{ type: 'put', key: 'venus', value: { moons: 0 } }], { sync: false })
  const snapshot = db.snapshot()
  for await (const [key, value] of db.iterator({ gte: 'a', snapshot, highWaterMarkBytes: 1000 })) {
    console.log(key.length, value.moons, moons, bytes?.length)
  }
  await snapshot.close()
  await db.clear({ lt: 'b', sync: true })
  const size: number = await db.approximateSize('a', 'z')
  await db.compactRange('a', 'z')
  const damage: string[] = await db.verify()
  await db.checkpoint('copy')
  console.log(size, damage, await db.has('earth'), await db.stats(), db.location)
  await using backups = await Backups.open('backups', { bytesPerSecond: 1 << 20 })
  const made: number = await db.backup(backups)
  for (const backup of await backups.list()) {
    if (backup.error) console.log(backup.error.code)
    else console.log(backup.created.getTime() + backup.ownBytes)
  }
  const removed: number[] = await backups.keepNewest(2)
  await backups.restore('restored', removed[0] ?? made)
  // @ts-expect-error: only an open makes them.
  console.log(new Backups('backups'))
  const consumer = await db.consumer('copy')
  await using changes = consumer.changes({ timeout: Infinity, signal: AbortSignal.timeout(1000) })
  for await (const change of changes) {
    if (change.type === 'batch') {
      for (const write of change.writes) {
        if (write.type === 'put') console.log(write.key.length + write.value.length, write.expiresAt?.getTime())
      }
    } else if (change.type === 'keyspaceRenamed') console.log(change.from + change.to)
    await consumer.acknowledge(change.sequence)
  }
  const next = await db.changes(snapshot.sequence + 1).wait(1.5)
  const held: number[] = (await db.consumers()).map(({ heldBytes }) => heldBytes)
  await db.removeConsumer(consumer.name)
  console.log(next?.sequence, held)
  await using secondary = await Secondary.open('folder', { valueEncoding: 'json' })
  const state = await secondary.catchUp<string, { moons: number }>()
  console.log((await state.get('earth'))?.moons)
  await state.close()
  await db.sublevel<string, string>('names', {}).put('a', 'b')
  await db.close()
  await WindrowLevel.destroy('folder')
}
