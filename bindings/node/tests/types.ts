// A user's program, which tsc checks and nobody runs.

import { Backups, Durability, OpenOptions, WindrowLevel } from 'windrow'

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
  await db.sublevel<string, string>('names', {}).put('a', 'b')
  await db.close()
  await WindrowLevel.destroy('folder')
}
