'use strict'

// Keyspaces beside that of the database, merges, and values that expire.

const assert = require('node:assert')
const { test } = require('node:test')
const { setTimeout: pause } = require('node:timers/promises')
const { WindrowLevel } = require('windrow')
const { folder, opened, withCode } = require('./common')

test('a keyspace is a database of its own', async (t) => {
  const db = await opened(t)
  const users = db.keyspace('users', { valueEncoding: 'json', keyspace: { preset: 'leveling' } })
  await db.put('ada', 'of the database')
  await users.put('ada', { born: 1815 })
  assert.strictEqual(users.name, 'users')
  assert.strictEqual(users.database, db)
  assert.deepStrictEqual(await users.get('ada'), { born: 1815 })
  assert.deepStrictEqual(users.getSync('ada'), { born: 1815 })
  assert.strictEqual(await db.get('ada'), 'of the database')
  const snapshot = db.snapshot()
  await users.batch([{ type: 'put', key: 'eve', value: {} }, { type: 'del', key: 'ada' }])
  assert.deepStrictEqual(await users.keys().all(), ['eve'])
  assert.deepStrictEqual(await users.iterator({ snapshot }).all(), [['ada', { born: 1815 }]])
  await users.sublevel('names').put('x', 'y')
  assert.deepStrictEqual(await users.keys({ lt: 'a' }).all(), ['!names!x'])
  await users.clear()
  assert.deepStrictEqual(await users.keys().all(), [])
  assert.deepStrictEqual(await db.keyspaceNames(), ['users'])
  await snapshot.close()
  await users.compactRange('', '~')
  assert.strictEqual(await users.approximateSize('', '~'), 0)
})

test('one batch writes to several keyspaces', async (t) => {
  const db = await opened(t)
  const users = db.keyspace('users', { valueEncoding: 'json' })
  const mails = db.keyspace('mails')
  await Promise.all([users.open(), mails.open()])
  const names = users.sublevel('names')
  await db.batch([
    { type: 'put', key: 'a', value: 'default' },
    { type: 'put', key: 'ada', value: { born: 1815 }, sublevel: users },
    { type: 'put', key: 'b', value: 'default, too' },
    { type: 'put', key: 'ada', value: 'ada@example.org', sublevel: mails },
    { type: 'put', key: 'x', value: 'y', sublevel: names }
  ])
  assert.deepStrictEqual(await db.keys().all(), ['a', 'b'])
  assert.deepStrictEqual(await users.get('ada'), { born: 1815 })
  assert.strictEqual(await mails.get('ada'), 'ada@example.org')
  assert.strictEqual(await names.get('x'), 'y')
  const batch = users.batch().put('eve', {}).del('ada').clearRange({ sublevel: mails, gte: 'a' }).clearRange({ gt: '!', lt: '"' }).del('b', { sublevel: db })
  await batch.put('c', 'd', { sublevel: db }).write()
  assert.deepStrictEqual([await users.keys().all(), await mails.keys().all(), await db.keys().all()], [['eve'], [], ['a', 'c']])
  assert.throws(() => db.batch().clearRange({ sublevel: names }), TypeError)
})

test('keyspaces stay, keep their options, and are dropped', async () => {
  const db = new WindrowLevel(folder())
  const users = db.keyspace('users', { keyspace: { defaultTtl: 1000 } })
  await users.put('ada', 'x')
  assert(await users.expiresAt('ada') instanceof Date)
  await db.close()
  assert.strictEqual(users.status, 'closed')
  await assert.rejects(users.get('ada'), withCode('LEVEL_DATABASE_NOT_OPEN'))
  await db.open()
  await users.open()
  await users.put('eve', 'y')
  assert(await users.expiresAt('eve') instanceof Date)
  assert.deepStrictEqual(await db.keyspaceNames(), ['users'])
  await db.put('', 'the empty key')
  assert.deepStrictEqual(await db.keyspaceNames(), ['users'])
  await db.dropKeyspace('users')
  assert.deepStrictEqual(await db.keyspaceNames(), [])
  await assert.rejects(users.put('ada', 'x'), withCode('LEVEL_NOT_FOUND'))
  await assert.rejects(db.dropKeyspace('users'), withCode('LEVEL_NOT_FOUND'))
  await db.close()
})

test('wrong names and keys are errors', async (t) => {
  const db = await opened(t)
  for (const name of ['default', 'leveldb.empty-key']) {
    await assert.rejects(db.keyspace(name).open(), withCode('LEVEL_INVALID_ARGUMENT'))
    await assert.rejects(db.dropKeyspace(name), withCode('LEVEL_INVALID_ARGUMENT'))
  }
  assert.throws(() => db.keyspace(''), TypeError)
  const users = db.keyspace('users')
  for (const call of [() => users.put('', 'x'), () => users.get(''), () => users.del('')]) {
    await assert.rejects(call(), withCode('LEVEL_INVALID_ARGUMENT'))
  }
  await assert.rejects(db.keyspace('other', { keyspace: { nonsense: 1 } }).open(), withCode('LEVEL_INVALID_ARGUMENT'))
  const other = new WindrowLevel(folder())
  const foreign = other.keyspace('foreign')
  await foreign.open()
  await assert.rejects(db.batch([{ type: 'put', key: 'a', value: 'b', sublevel: foreign }]), withCode('LEVEL_INVALID_ARGUMENT'))
  await other.close()
})

test('operands are folded into values', async () => {
  const options = { mergeOperator: 'windrow.append.2c', mergeOperators: { sums: 'windrow.add_i64.wrapping' } }
  const db = new WindrowLevel(folder(), options)
  const sums = db.keyspace('sums', { valueEncoding: 'buffer' })
  const number = (value) => { const bytes = Buffer.alloc(8); bytes.writeBigInt64LE(BigInt(value)); return bytes }
  await db.put('list', 'a')
  await db.merge('list', 'b')
  assert.strictEqual(await db.get('list'), 'a,b')
  await Promise.all(Array.from({ length: 50 }, (_, i) => sums.merge('sum', number(i))))
  assert.strictEqual((await sums.get('sum')).readBigInt64LE(), 1225n)
  await db.batch().merge('list', 'c').merge('sum', number(-25), { sublevel: sums, valueEncoding: 'buffer' }).write({ sync: true })
  const transaction = await db.transaction()
  await db.merge('list', 'd', { transaction })
  await sums.merge('sum', number(100), { transaction })
  assert.strictEqual(await db.get('list', { transaction }), 'a,b,c,d')
  assert.strictEqual(await db.get('list'), 'a,b,c')
  await transaction.commit()
  assert.strictEqual((await sums.get('sum')).readBigInt64LE(), 1300n)
  await assert.rejects(db.keyspace('plain').merge('a', 'b'), withCode('LEVEL_INVALID_ARGUMENT'))
  await sums.put('sum', Buffer.from('odd'))
  await sums.merge('sum', number(1))
  await assert.rejects(sums.get('sum'), withCode('LEVEL_MERGE'))
  await db.close()
  // The database has recorded the operators.
  const again = new WindrowLevel(db.location)
  await again.merge('list', 'e')
  assert.strictEqual(await again.get('list'), 'a,b,c,d,e')
  await again.close()
  const wrong = new WindrowLevel(folder(), { mergeOperator: 'windrow.nonsense' })
  await assert.rejects(wrong.open(), withCode('LEVEL_INVALID_ARGUMENT'))
})

test('values with a time to live expire', async (t) => {
  const db = await opened(t)
  await db.put('long', 'x', { ttl: 3600 })
  await db.put('none', 'x')
  const before = Date.now()
  const expiry = await db.expiresAt('long')
  assert(Math.abs(expiry - before - 3_600_000) < 600_000, expiry)
  assert.strictEqual(await db.expiresAt('none'), null)
  assert.strictEqual(await db.expiresAt('missing'), undefined)
  await db.put('now', 'x', { ttl: 0 })
  await db.batch([{ type: 'put', key: 'batch', value: 'x', ttl: 0 }, { type: 'put', key: 'stays', value: 'x' }])
  await db.batch().put('chained', 'x', { ttl: 0 }).write()
  await db.sublevel('s').put('in a sublevel', 'x', { ttl: 0 })
  const transaction = await db.transaction()
  await db.put('transaction', 'x', { ttl: 0, transaction })
  await transaction.commit()
  await db.put('soon', 'x', { ttl: 0.02 })
  while (await db.get('soon') !== undefined) await pause(5)
  assert.deepStrictEqual(await db.keys().all(), ['long', 'none', 'stays'])
  for (const ttl of [-1, NaN, '5']) await assert.rejects(async () => db.put('a', 'b', { ttl }), TypeError)
  await assert.rejects(db.put('a', 'b', { ttl: Infinity }), withCode('LEVEL_INVALID_ARGUMENT'))
})

test('reads that are answered at once let the loop of Node turn', async (t) => {
  const db = await opened(t)
  await db.put('key', 'value')
  let turns = 0
  const timer = setInterval(() => turns++, 0)
  while (turns < 3) assert.strictEqual(await db.get('key'), 'value')
  clearInterval(timer)
})

test('a batch of merges is written once, and takes nothing more', async (t) => {
  const db = await opened(t, { mergeOperator: 'windrow.append.2c' })
  await db.put('removed', 'x')
  const batch = db.batch().merge('list', 'a').clearRange({ gte: 'm' })
  const written = batch.write()
  for (const call of [
    () => batch.write(),
    async () => batch.merge('list', 'b'),
    async () => batch.clearRange(),
    async () => batch.put('list', 'c'),
    async () => batch.del('list'),
    async () => batch.clear()
  ]) {
    await assert.rejects(call, withCode('LEVEL_BATCH_NOT_OPEN'))
  }
  await written
  await assert.rejects(batch.write(), withCode('LEVEL_BATCH_NOT_OPEN'))
  assert.deepStrictEqual(await db.iterator().all(), [['list', 'a']])

  // Beside a write that abstract-level knows.
  const other = db.batch().put('key', 'value').merge('list', 'b')
  const both = other.write()
  assert.throws(() => other.merge('list', 'c'), withCode('LEVEL_BATCH_NOT_OPEN'))
  await both
  assert.deepStrictEqual(await db.iterator().all(), [['key', 'value'], ['list', 'a,b']])
})
