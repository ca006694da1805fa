// A user's program, which tsc checks and nobody runs.

import {
  Backups, Durability, Keyspace, OpenOptions, Savepoint, Secondary, Transaction, WindrowLevel
} from 'windrow'

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
  await keyspaces(db)
  await db.close()
  await WindrowLevel.destroy('folder')
}

async function keyspaces (db: WindrowLevel<string, { moons: number }>): Promise<void> {
  const orders: Keyspace<string, Buffer> = db.keyspace<string, Buffer>('orders', {
    valueEncoding: 'buffer',
    keyspace: { preset: 'leveling' }
  })
  await orders.put('1', Buffer.of(1), { ttl: 60 })
  await db.batch([
    { type: 'put', key: 'earth', value: { moons: 1 }, ttl: 5 },
    { type: 'put', key: '2', value: { moons: 2 }, sublevel: orders }
  ])
  const expiry: Date | null | undefined = await db.expiresAt('earth')
  await orders.merge('1', Buffer.of(2), { sync: true })
  await db.batch().put('mars', { moons: 2 }, { ttl: 1 }).merge('a', { moons: 1 }).clearRange({ gte: 'b' }).write()
  await using transaction: Transaction = await db.transaction({ locking: true, timeout: 5 })
  const found = await db.get('earth', { transaction, forUpdate: true })
  const [moons] = await orders.getMany(['1'], { transaction })
  const savepoint: Savepoint = await transaction.savepoint()
  await db.del('earth', { transaction })
  for await (const [key] of db.iterator({ gt: 'a', transaction })) console.log(key, expiry, found?.moons, moons?.length)
  await transaction.rollbackTo(savepoint)
  await transaction.commit({ sync: true })
  const count: number = await db.transact(async (transaction) => {
    return (await db.get('earth', { transaction }))?.moons ?? 0
  }, { isolation: 'snapshot' })
  // @ts-expect-error: there is no such isolation.
  await db.transaction({ isolation: 'none' })
  // @ts-expect-error: a snapshot is no transaction.
  await db.get('earth', { transaction: db.snapshot() })
  console.log(count, await db.keyspaceNames(), orders.name)
  await db.dropKeyspace('orders')
}
