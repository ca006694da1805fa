'use strict'

// Transactions: what they see, what their commits depend on, locks, and their ends.

const assert = require('node:assert')
const path = require('node:path')
const { test } = require('node:test')
const { Worker } = require('node:worker_threads')
const { Transaction, WindrowLevel } = require('windrow')
const { folder, opened, randomFrom, withCode } = require('./common')

test('a transaction sees its own writes, and others see them after the commit', async (t) => {
  const db = await opened(t)
  await db.batch().put('a', '1').put('b', '2').put('c', '3').write()
  const transaction = await db.transaction()
  assert(transaction instanceof Transaction)
  await db.put('a', '1', { transaction })
  await db.put('d', '4', { transaction })
  await db.del('b', { transaction })
  await db.batch([{ type: 'put', key: 'e', value: '5' }, { type: 'del', key: 'c' }], { transaction })
  await db.batch().put('f', '6').write({ transaction })
  const own = [['a', '1'], ['d', '4'], ['e', '5'], ['f', '6']]
  assert.deepStrictEqual(await db.iterator({ transaction }).all(), own)
  assert.deepStrictEqual(await db.iterator({ transaction, reverse: true }).all(), own.toReversed())
  assert.deepStrictEqual(await db.keys({ transaction, gt: 'a', limit: 2 }).all(), ['d', 'e'])
  assert.deepStrictEqual(await db.getMany(['b', 'd'], { transaction }), [undefined, '4'])
  assert.deepStrictEqual(await db.hasMany(['b', 'd'], { transaction }), [false, true])
  assert.strictEqual(await db.has('f', { transaction }), true)
  assert.strictEqual(await db.get('e', { transaction }), '5')
  assert.deepStrictEqual(await db.keys().all(), ['a', 'b', 'c'])
  await db.clear({ gte: 'e', transaction })
  assert.strictEqual(await db.get('f', { transaction }), undefined)
  await transaction.commit({ sync: true })
  assert.deepStrictEqual(await db.iterator().all(), [['a', '1'], ['d', '4']])
})

test('an iterator in a transaction seeks, and reads no more than it gives', async (t) => {
  const db = await opened(t)
  await db.batch().put('a', '1').put('b', '2').put('c', '3').write()
  const transaction = await db.transaction()
  const iterator = db.iterator({ transaction })
  assert.deepStrictEqual(await iterator.next(), ['a', '1'])
  await db.put('target', 'x', { transaction })
  // The commit depends on the first entry alone.
  await db.put('c', 'changed')
  await iterator.close()
  await transaction.commit()

  const other = await db.transaction()
  const keys = db.keys({ transaction: other })
  keys.seek('b')
  assert.deepStrictEqual(await keys.next(), 'b')
  assert.deepStrictEqual(await keys.nextv(10), ['c', 'target'])
  await db.put('d', 'between')
  await db.put('e', 'own', { transaction: other })
  await assert.rejects(other.commit(), withCode('LEVEL_CONFLICT'))
  assert.strictEqual(await db.get('e'), undefined)
  keys.seek('a')
  await assert.rejects(keys.next(), withCode('LEVEL_TRANSACTION_NOT_OPEN'))
  await keys.close()
})

test('a commit fails if what it depends on has changed', async (t) => {
  const db = await opened(t)
  await db.put('stock', '3')
  const cases = [
    // How the transaction reads, its isolation, and whether its commit fails.
    [(transaction) => db.get('stock', { transaction }), 'serializable', true],
    [(transaction) => db.get('stock', { transaction }), 'snapshot', false],
    [(transaction) => db.get('stock', { transaction, forUpdate: true }), 'snapshot', true],
    [(transaction) => db.getMany(['other', 'stock'], { transaction, forUpdate: true }), 'snapshot', true],
    [(transaction) => db.put('stock', 'own', { transaction }), 'snapshot', true],
    [(transaction) => db.get('other', { transaction }), 'serializable', false]
  ]
  for (const [read, isolation, fails] of cases) {
    const transaction = await db.transaction({ isolation })
    await read(transaction)
    await db.put('mine', 'x', { transaction })
    await db.put('stock', '2')
    if (fails) await assert.rejects(transaction.commit(), withCode('LEVEL_CONFLICT'))
    else await transaction.commit()
    assert.strictEqual(await db.get('mine'), fails ? undefined : 'x')
    await db.del('mine')
  }
  await assert.rejects(db.transaction({ isolation: 'none' }), withCode('LEVEL_INVALID_ARGUMENT'))
})

test('savepoints, sublevels and keyspaces are of the transaction', async (t) => {
  const db = await opened(t)
  const orders = db.keyspace('orders', { valueEncoding: 'json' })
  const names = db.sublevel('names')
  await orders.open()
  const transaction = await db.transaction()
  await orders.put('1', { apples: 2 }, { transaction })
  await names.put('first', 'Ada', { transaction })
  const savepoint = await transaction.savepoint()
  await orders.put('2', {}, { transaction })
  await db.batch([
    { type: 'put', key: '3', value: [1], sublevel: orders },
    { type: 'put', key: 'second', value: 'Eve', sublevel: names }
  ], { transaction })
  assert.deepStrictEqual(await orders.keys({ transaction }).all(), ['1', '2', '3'])
  assert.deepStrictEqual(await names.values({ transaction }).all(), ['Ada', 'Eve'])
  await transaction.rollbackTo(savepoint)
  assert.deepStrictEqual(await orders.iterator({ transaction }).all(), [['1', { apples: 2 }]])
  assert.strictEqual(await orders.get('1'), undefined)
  await transaction.commit()
  assert.deepStrictEqual(await orders.values().all(), [{ apples: 2 }])
  assert.deepStrictEqual(await names.iterator().all(), [['first', 'Ada']])
})

test('calls of one transaction work in the order of their begin', async (t) => {
  const db = await opened(t)
  for (const locking of [false, true]) {
    const transaction = await db.transaction({ locking })
    const calls = []
    for (let i = 0; i < 200; i++) {
      calls.push(db.put('counter', String(i), { transaction }))
      calls.push(db.get('counter', { transaction }).then((value) => assert.strictEqual(value, String(i))))
    }
    const committed = transaction.commit()
    await Promise.all(calls)
    await committed
    assert.strictEqual(await db.get('counter'), '199')
  }
})

test('locking transactions wait for each other', async (t) => {
  const db = await opened(t)
  await db.put('counter', '0')
  const add = async () => {
    const transaction = await db.transaction({ locking: true, timeout: 60 })
    const value = Number(await db.get('counter', { transaction, forUpdate: true }))
    await db.put('counter', String(value + 1), { transaction })
    await transaction.commit()
  }
  // More than there are threads of libuv: those that wait have threads of their own.
  await Promise.all(Array.from({ length: 40 }, add))
  assert.strictEqual(await db.get('counter'), '40')
})

test('a lock that is not free in time, and one that never will be, are errors', async (t) => {
  const db = await opened(t)
  const first = await db.transaction({ locking: true, timeout: 60 })
  const second = await db.transaction({ locking: true, timeout: 0 })
  await db.put('a', 'first', { transaction: first })
  await assert.rejects(db.put('a', 'second', { transaction: second }), withCode('LEVEL_TIMED_OUT'))
  await assert.rejects(db.get('a', { transaction: second, forUpdate: true }), withCode('LEVEL_TIMED_OUT'))
  await second.rollback()

  const third = await db.transaction({ locking: true, timeout: 60 })
  await db.put('b', 'third', { transaction: third })
  const waiting = db.put('b', 'first', { transaction: first })
  const outcomes = await Promise.allSettled([waiting, db.put('a', 'third', { transaction: third })].map(
    (call, position) => call.catch(async (error) => {
      await [first, third][position].rollback()
      throw error
    })
  ))
  const failed = outcomes.filter(({ status }) => status === 'rejected').map(({ reason }) => reason.code)
  assert.deepStrictEqual(failed, ['LEVEL_DEADLOCK'])
  await first.rollback()
  await third.rollback()
})

test('transact tries again after conflicts, and only then', async (t) => {
  const db = await opened(t, { valueEncoding: 'json' })
  await db.put('sum', 0)
  for (const options of [{}, { locking: true }]) {
    const add = (transaction) => {
      const read = db.get('sum', { transaction, forUpdate: true })
      return read.then((sum) => db.put('sum', sum + 1, { transaction }).then(() => sum + 1))
    }
    const sums = await Promise.all(Array.from({ length: 20 }, () => db.transact(add, options)))
    assert.strictEqual(new Set(sums).size, 20)
  }
  assert.strictEqual(await db.get('sum'), 40)
  let calls = 0
  const failing = async (transaction) => {
    calls++
    await db.put('sum', -1, { transaction })
    throw new Error('no')
  }
  await assert.rejects(db.transact(failing), /^Error: no$/)
  assert.strictEqual(calls, 1)
  assert.strictEqual(await db.get('sum'), 40)
})

test('use after the end is an error', async (t) => {
  const db = await opened(t)
  for (const end of ['commit', 'rollback', 'close']) {
    const transaction = await db.transaction()
    await db.put(end, 'x', { transaction })
    await transaction[end]()
    const uses = [
      () => db.get('a', { transaction }),
      () => db.getMany(['a'], { transaction }),
      () => db.put('a', '1', { transaction }),
      () => db.del('a', { transaction }),
      () => db.clear({ transaction }),
      () => db.batch([{ type: 'del', key: 'a' }], { transaction }),
      () => db.iterator({ transaction }).next(),
      () => transaction.savepoint(),
      () => transaction.commit()
    ]
    for (const use of uses) {
      await assert.rejects(async () => use(), withCode('LEVEL_TRANSACTION_NOT_OPEN'))
    }
    await transaction.rollback()
    assert.strictEqual(await db.get(end), end === 'commit' ? 'x' : undefined)
  }
  await assert.rejects(async () => db.get('a', { transaction: {} }), TypeError)
  const transaction = await db.transaction()
  await assert.rejects(db.put('', 'x', { transaction }), withCode('LEVEL_INVALID_ARGUMENT'))
  await assert.rejects(db.clear({ transaction, limit: 1 }), withCode('LEVEL_NOT_SUPPORTED'))
  assert.throws(() => db.getSync('a', { transaction }), withCode('LEVEL_NOT_SUPPORTED'))
})

test('a close of the database rolls its transactions back, also one that waits for a lock', async () => {
  const db = new WindrowLevel(folder())
  await db.put('a', '1')
  const first = await db.transaction({ locking: true })
  const second = await db.transaction({ locking: true, timeout: 60 })
  const iterator = db.iterator({ transaction: first })
  await db.put('a', 'first', { transaction: first })
  const waiting = db.put('a', 'second', { transaction: second })
  await db.close()
  await waiting
  await assert.rejects(first.commit(), withCode('LEVEL_TRANSACTION_NOT_OPEN'))
  await assert.rejects(iterator.next(), withCode('LEVEL_ITERATOR_NOT_OPEN'))
  await db.open()
  assert.strictEqual(await db.get('a'), '1')
  await db.close()
})

test('a transaction that nobody ends does not outlive its database', async () => {
  const db = new WindrowLevel(folder())
  await db.open()
  for (let i = 0; i < 100; i++) {
    const transaction = await db.transaction({ locking: i % 2 === 0 })
    await db.put(`key ${i}`, 'x', { transaction })
  }
  await db.close()
  await db.open()
  assert.deepStrictEqual(await db.keys().all(), [])
  await db.close()
})

test('workers add to counters in transactions', async () => {
  const options = { multithreading: true }
  const db = new WindrowLevel(folder(), options)
  await db.open()
  await db.batch().put('0', '0').put('1', '0').write()
  const data = { work: 'transact', location: db.location, options, count: 100 }
  const workers = [false, true].map((locking) => new Promise((resolve, reject) => {
    const worker = new Worker(path.join(__dirname, 'worker.js'), { workerData: { ...data, locking } })
    worker.on('error', reject)
    worker.on('exit', resolve)
  }))
  await Promise.all(workers)
  const counters = (await db.values().all()).map(Number)
  assert.strictEqual(counters[0] + counters[1], 200)
  await db.close()
})

test('random transactions give the states of a model', async (t) => {
  const db = await opened(t)
  for (let seed = 1; seed <= 8; seed++) {
    const random = randomFrom(seed)
    let model = new Map(await db.iterator().all())
    for (let round = 0; round < 12; round++) {
      const transaction = await db.transaction({ locking: random(2) === 0 })
      const own = new Map(model)
      for (let i = 0; i < 20; i++) {
        const key = `key ${random(12)}`
        const choice = random(8)
        if (choice < 3) {
          own.set(key, String(i))
          await db.put(key, String(i), { transaction })
        } else if (choice === 3) {
          own.delete(key)
          await db.del(key, { transaction })
        } else if (choice === 4) {
          for (const other of [...own.keys()]) if (other >= key && other < 'key 4') own.delete(other)
          await db.clear({ gte: key, lt: 'key 4', transaction })
        } else {
          assert.strictEqual(await db.get(key, { transaction }), own.get(key))
        }
      }
      const entries = [...own].sort(([a], [b]) => a < b ? -1 : 1)
      assert.deepStrictEqual(await db.iterator({ transaction }).all(), entries)
      if (random(3) === 0) {
        await transaction.rollback()
      } else {
        await transaction.commit()
        model = own
      }
      assert.strictEqual((await db.keys().all()).length, model.size)
    }
  }
})
