'use strict'

// The change feed: its order, what a change has, waits, consumers that go on, fall behind and begin again.

const assert = require('node:assert')
const { test } = require('node:test')
const { setTimeout: sleep } = require('node:timers/promises')
const { WindrowLevel } = require('windrow')
const { folder, opened, randomFrom, withCode } = require('./common')

const small = { keyspace: { memtableBytes: 64 << 10 } }
const asBytes = { keyEncoding: 'buffer', valueEncoding: 'buffer' }

async function all (changes) {
  const found = []
  for await (const change of changes) found.push(change)
  return found
}

/** Writes as short text. */
function described (change) {
  return change.writes.map(({ type, keyspace, key, value, gte, lt, expiresAt }) =>
    `${type} ${keyspace} ${gte ?? key}=${lt ?? value ?? ''}${expiresAt ? '!' : ''}`)
}

function newest (db) {
  const snapshot = db.snapshot()
  const { sequence } = snapshot
  snapshot.close()
  return sequence
}

test('each change comes once and in order', async (t) => {
  const db = await opened(t)
  const consumer = await db.consumer('copy')
  assert.strictEqual(consumer.name, 'copy')
  const changes = consumer.changes()
  assert.deepStrictEqual(await all(changes), [])
  await db.put('a', '1')
  await db.batch().put('b', '2').del('a').put('', 'empty').write()
  await db.clear({ gte: 'e', lt: 'f' })
  await db.clear()
  await db.put('large', 'x'.repeat(300_000))
  const found = await all(changes)
  const batches = found.filter(({ type }) => type === 'batch')
  assert.deepStrictEqual(batches.slice(0, -1).map(described), [
    ['put default a=1'],
    ['put default b=2', 'del default a=', 'put default =empty'],
    ['clear default e=f'],
    ['clear default \u0000=', 'del default =']
  ])
  assert.strictEqual(batches.at(-1).writes[0].value.length, 300_000)
  assert.strictEqual(batches.at(-1).writes[0].value[299_999], 120)
  assert.strictEqual(batches[1].sequence, batches[1].firstSequence + 2)
  // The first write of the empty key makes a keyspace for it.
  assert.deepStrictEqual(found.filter(({ type }) => type !== 'batch').map(({ type }) => type), ['keyspaceCreated'])
  assert.deepStrictEqual(await all(changes), [])

  // From within a batch it comes as a whole.
  const again = db.changes(batches[1].firstSequence + 1)
  assert.deepStrictEqual((await all(again)).map(({ sequence }) => sequence),
    found.slice(found.indexOf(batches[1])).map(({ sequence }) => sequence))
  await assert.rejects(db.changes(newest(db) + 2).wait(0), withCode('LEVEL_INVALID_ARGUMENT'))
  await changes.close()
  await again.close()
})

test('a change says what expires, and is a batch of another database', async (t) => {
  const db = await opened(t, { keyspace: { defaultTtl: 3600 } })
  const changes = db.changes(newest(db) + 1)
  const before = Date.now()
  await db.batch([{ type: 'put', key: 'a', value: '1' }, { type: 'del', key: 'b' }])
  const change = await changes.wait()
  const [{ expiresAt }] = change.writes
  assert.ok(Math.abs(expiresAt - before - 3_600_000) < 60_000)
  const copy = await opened(t)
  await copy.put('b', '2')
  await copy.batch(change.writes, asBytes)
  assert.deepStrictEqual(await copy.iterator().all(), [['a', '1']])
})

test('changes of keyspaces, transactions and merges come, too', async (t) => {
  const db = await opened(t, { mergeOperators: { users: 'windrow.append.2c' } })
  const changes = (await db.consumer('copy')).changes()
  const users = db.keyspace('users')
  await users.put('a', '1')
  await db.put('a', 'x', { ttl: 3600 })
  const transaction = await db.transaction()
  await db.put('b', '3', { transaction })
  await users.merge('a', '2', { transaction })
  await transaction.commit()
  const other = await db.transaction()
  await db.put('c', '4', { transaction: other })
  await other.rollback()
  const [created, put, expiring, committed, ...none] = await all(changes)
  assert.deepStrictEqual([created.type, created.keyspace], ['keyspaceCreated', 'users'])
  assert.deepStrictEqual(described(put), ['put users a=1'])
  assert.deepStrictEqual(described(expiring), ['put default a=x!'])
  assert.deepStrictEqual(described(committed).sort(), ['merge users a=2', 'put default b=3'])
  assert.deepStrictEqual(none, [])
  await db.dropKeyspace('users')
  const [dropped] = await all(changes)
  assert.deepStrictEqual([dropped.type, dropped.keyspace], ['keyspaceDropped', 'users'])
  const snapshot = db.snapshot()
  assert.strictEqual(await db.get('b', { snapshot }), '3')
  assert.strictEqual(snapshot.sequence, dropped.sequence)
  await snapshot.close()
})

test('a feed beside writers has no gap', async (t) => {
  const db = await opened(t, small)
  let next = newest(db) + 1
  const changes = db.changes(next, { timeout: Infinity })
  const random = randomFrom(1)
  const write = async (writer) => {
    for (let i = 0; i < 200; i++) {
      const key = String(random(50))
      if (random(4) === 0) await db.del(key)
      else await db.batch([{ type: 'put', key, value: `${writer} ${i}` }, { type: 'put', key: 'x' + key, value: 'y' }])
    }
  }
  Promise.all([1, 2, 3, 4].map(write)).then(() => db.put('last', 'one'))
  const copy = await opened(t)
  for await (const { sequence, firstSequence, writes } of changes) {
    assert.strictEqual(firstSequence, next)
    next = sequence + 1
    await copy.batch(writes, asBytes)
    if (String(writes.at(-1).key) === 'last') break
  }
  assert.strictEqual(next, newest(db) + 1)
  assert.deepStrictEqual(await copy.iterator().all(), await db.iterator().all())
})

test('a wait ends with its time, its signal or a change, and loses nothing', async (t) => {
  const db = await opened(t)
  const changes = db.changes(newest(db) + 1, { timeout: 0.01 })
  assert.deepStrictEqual(await all(changes), [])
  assert.strictEqual(await changes.wait(0), undefined)
  assert.strictEqual(await changes.wait(0.02), undefined)
  const waiting = changes.wait()
  await db.put('a', '1')
  assert.deepStrictEqual(described(await waiting), ['put default a=1'])
  await db.put('b', '2')
  await db.put('c', '3')
  assert.deepStrictEqual((await all(changes)).map(described), [['put default b=2'], ['put default c=3']])

  // Waits in a row, each of which ends early, beside writes.
  let expected = 0
  const written = (async () => {
    for (let i = 0; i < 200; i++) {
      await db.put('n', String(i))
      if (i % 10 === 0) await sleep(1)
    }
  })()
  for (let round = 0; expected < 200; round++) {
    const controller = new AbortController()
    const abort = async () => {
      for (let i = 0; i < round % 7; i++) await null
      if (round % 3 === 0) await sleep(1)
      controller.abort()
    }
    const [outcome] = await Promise.allSettled([changes.wait(10, { signal: controller.signal }), abort()])
    if (outcome.status === 'fulfilled') {
      assert.deepStrictEqual(described(outcome.value), [`put default n=${expected}`])
      expected++
    } else {
      assert.strictEqual(outcome.reason.name, 'AbortError')
    }
  }
  await written
  const aborted = AbortSignal.abort()
  await assert.rejects(changes.wait(0, { signal: aborted }), { name: 'AbortError' })
  await assert.rejects(all(db.changes(1, { signal: aborted })), { name: 'AbortError' })
  for (const wrong of [-1, NaN, 'long']) await assert.rejects(changes.wait(wrong), TypeError)
  assert.throws(() => db.changes(-1), TypeError)
  await assert.rejects(db.consumer(5), TypeError)
})

test('waits keep no thread of libuv', async (t) => {
  const db = await opened(t)
  // More than libuv has threads.
  const waits = Array.from({ length: 12 }, () => db.changes(newest(db) + 1).wait())
  await sleep(20)
  await db.put('a', '1')
  for (const change of await Promise.all(waits)) assert.deepStrictEqual(described(change), ['put default a=1'])
})

test('a close ends a wait', async (t) => {
  const db = await opened(t)
  const other = await opened(t)
  const consumer = await other.consumer('one')
  const [first, second] = [db.changes(1), consumer.changes({ timeout: Infinity })]
  await all(first)
  await first.wait(0)
  const ended = [first.wait(), all(second), db.changes(1).wait(0)]
  const outcomes = Promise.allSettled(ended)
  await sleep(20)
  await first.close()
  await first.close()
  await other.close()
  const [one, two] = await outcomes
  assert.strictEqual(one.reason.code, 'LEVEL_CHANGES_NOT_OPEN')
  assert.strictEqual(two.reason.code, 'LEVEL_CHANGES_NOT_OPEN')
  await assert.rejects(first.wait(0), withCode('LEVEL_CHANGES_NOT_OPEN'))
  for (const call of [
    () => consumer.acknowledge(0),
    () => consumer.acknowledged(),
    () => consumer.changes().wait(0),
    () => other.consumer('two'),
    () => other.consumers(),
    () => other.removeConsumer('one'),
    () => other.changes(1).wait(0)
  ]) await assert.rejects(call(), withCode('LEVEL_DATABASE_NOT_OPEN'))
})

test('a consumer goes on after an open', async () => {
  const location = folder()
  let db = new WindrowLevel(location, small)
  await db.open()
  let consumer = await db.consumer('copy')
  const key = (i) => String(i).padStart(6, '0')
  for (let i = 0; i < 2000; i += 4) {
    await Promise.all([0, 1, 2, 3].map((j) => db.put(key(i + j), 'v'.repeat(100))))
  }
  await db.flush()
  const read = async (changes, limit) => {
    const keys = []
    let last
    for await (const { sequence, writes } of changes) {
      keys.push(...writes.map(({ key }) => String(key)))
      last = sequence
      if (keys.length >= limit) break
    }
    return { keys, last }
  }
  const changes = consumer.changes()
  const { keys, last: place } = await read(changes, 1000)
  await consumer.acknowledge(place)
  await read(changes, 500)
  await db.close()

  // What was not acknowledged comes again.
  db = new WindrowLevel(location, small)
  await db.open()
  const [{ name, acknowledged, isBehind, heldBytes }] = await db.consumers()
  assert.deepStrictEqual({ name, acknowledged, isBehind }, { name: 'copy', acknowledged: place, isBehind: false })
  assert.ok(heldBytes > 0)
  consumer = await db.consumer('copy')
  assert.strictEqual(await consumer.acknowledged(), place)
  const { keys: rest, last } = await read(consumer.changes(), 10_000)
  assert.deepStrictEqual([...keys, ...rest].sort(), Array.from({ length: 2000 }, (_, i) => key(i)))
  await assert.rejects(consumer.acknowledge(last + 1), withCode('LEVEL_INVALID_ARGUMENT'))
  await consumer.acknowledge(last)
  assert.deepStrictEqual(await all(consumer.changes()), [])
  await db.removeConsumer('copy')
  await assert.rejects(db.removeConsumer('copy'), withCode('LEVEL_NOT_FOUND'))
  await assert.rejects(consumer.acknowledge(last), withCode('LEVEL_NOT_FOUND'))
  await db.close()
})

test('a consumer falls behind and begins again', async (t) => {
  const db = await opened(t, { ...small, changeRetentionBytes: 200 << 10, changeRetentionIdle: 3600 })
  let consumer = await db.consumer('copy')
  const changes = consumer.changes()
  await changes.wait(0)
  const value = 'v'.repeat(200)
  while (!(await db.consumers())[0].isBehind) {
    await db.batch(Array.from({ length: 300 }, (_, i) => ({ type: 'put', key: String(i), value })))
    await db.flush()
  }
  for (const call of [
    () => changes.wait(0),
    () => all(changes),
    () => consumer.changes().wait(),
    () => consumer.acknowledge(1),
    () => db.changes(1).wait(0)
  ]) await assert.rejects(call(), withCode('LEVEL_FELL_BEHIND'))

  await db.removeConsumer('copy')
  consumer = await db.consumer('copy')
  await db.put('before', '1')
  const snapshot = db.snapshot()
  const copy = await opened(t)
  for await (const [key, value] of db.iterator({ snapshot })) await copy.put(key, value)
  const noted = snapshot.sequence
  await snapshot.close()
  assert.throws(() => snapshot.sequence, withCode('LEVEL_DATABASE_NOT_OPEN'))
  await db.put('after', '2')
  for await (const change of consumer.changes()) {
    if (change.sequence > noted) {
      assert.deepStrictEqual(described(change), ['put default after=2'])
      await copy.batch(change.writes, asBytes)
    }
    await consumer.acknowledge(change.sequence)
  }
  assert.deepStrictEqual(await copy.iterator().all(), await db.iterator().all())
})

test('a process ends with an open feed', async () => {
  const { spawnSync } = require('node:child_process')
  const program = `
    const { WindrowLevel } = require('windrow')
    const db = new WindrowLevel(${JSON.stringify(folder())})
    db.open().then(async () => {
      const changes = db.changes(1, { timeout: Infinity })
      for await (const { type } of changes) if (type === 'batch') process.exit(7)
    })
    setTimeout(() => db.put('a', '1'), 20)`
  const { status, stderr } = spawnSync(process.execPath, ['-e', program])
  assert.strictEqual(status, 7, String(stderr))
})
