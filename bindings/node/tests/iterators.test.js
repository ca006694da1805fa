'use strict'

const assert = require('node:assert')
const { test } = require('node:test')
const { WindrowLevel } = require('windrow')
const { folder, opened, withCode } = require('./common')

const letters = async (t) => {
  const db = await opened(t)
  await db.batch([...'abcdefg'].map((key) => ({ type: 'put', key, value: key.toUpperCase() })))
  return db
}

test('the first entry is read alone, and the next ones together', async (t) => {
  const db = await letters(t)
  const iterator = db.iterator()
  for (const [key, cached] of [['a', 0], ['b', 5]]) {
    assert.deepStrictEqual(await iterator.next(), [key, key.toUpperCase()])
    assert.strictEqual(iterator.cached, cached)
  }
  iterator.seek('d')
  assert.strictEqual(iterator.cached, 0)
  for (const [key, cached] of [['d', 0], ['e', 2]]) {
    assert.deepStrictEqual(await iterator.next(), [key, key.toUpperCase()])
    assert.strictEqual(iterator.cached, cached)
  }
  assert.deepStrictEqual(await iterator.nextv(1), [['f', 'F']])
  assert.deepStrictEqual(await iterator.nextv(10), [['g', 'G']])
  assert.deepStrictEqual(await iterator.nextv(10), [])
})

test('an iterator with a limit reads no more than it gives', async (t) => {
  const db = await letters(t)
  const iterator = db.iterator({ limit: 3 })
  await iterator.next()
  await iterator.next()
  assert.strictEqual(iterator.cached, 1)
  assert.deepStrictEqual(await iterator.all(), [['c', 'C']])
})

test('highWaterMarkBytes ends a read after the entry that passes it', async (t) => {
  const db = await letters(t)
  for (const [highWaterMarkBytes, count] of [[0, 1], [1, 1], [2, 2], [3, 2], [9, 5], [Infinity, 1]]) {
    const iterator = db.iterator({ highWaterMarkBytes })
    assert.strictEqual((await iterator.nextv(1000)).length, count, `${highWaterMarkBytes}`)
    await iterator.close()
    assert.strictEqual((await db.iterator({ highWaterMarkBytes }).all()).length, 7)
  }
})

test('keys and values alone', async (t) => {
  const db = await letters(t)
  assert.deepStrictEqual(await db.keys({ gte: 'f' }).all(), ['f', 'g'])
  assert.deepStrictEqual(await db.values({ gte: 'f' }).all(), ['F', 'G'])
  assert.deepStrictEqual(await db.iterator({ gte: 'g', values: false }).all(), [['g', undefined]])
  assert.deepStrictEqual(await db.iterator({ gte: 'g', keys: false }).all(), [[undefined, 'G']])
})

test('entries that are bytes do not overlap', async (t) => {
  const db = await letters(t)
  for (const encoding of ['buffer', 'view']) {
    const entries = await db.iterator({ keyEncoding: encoding, valueEncoding: encoding }).all()
    for (const [key, value] of entries) {
      key.fill(0)
      value.fill(1)
    }
    assert.ok(entries.every(([key, value]) => key[0] === 0 && value[0] === 1))
  }
  assert.deepStrictEqual(await db.keys().all(), [...'abcdefg'])
})

test('an abort ends a read', async (t) => {
  const db = await letters(t)
  const controller = new AbortController()
  const iterator = db.iterator({ signal: controller.signal })
  await iterator.next()
  const read = iterator.all()
  controller.abort()
  await assert.rejects(read, (error) => error.name === 'AbortError' && withCode('LEVEL_ABORTED')(error))
  const other = db.iterator({ signal: controller.signal })
  await assert.rejects(other.next(), withCode('LEVEL_ABORTED'))
})

test('a read in a loop lets other work run', async (t) => {
  const db = await opened(t)
  await db.batch(Array.from({ length: 10_000 }, (_, key) => ({ type: 'put', key: `${key}`, value: '' })))
  let breaths = 0
  const breathe = () => { breaths++; timer = setImmediate(breathe) }
  let timer = setImmediate(breathe)
  let entries = 0
  for await (const _ of db.iterator({ highWaterMarkBytes: 1 << 30 })) entries++
  clearImmediate(timer)
  assert.strictEqual(entries, 10_000)
  assert.ok(breaths >= 9, `${breaths}`)
})

test('an iterator reads the state at its begin, beside writes', async (t) => {
  const db = await letters(t)
  const iterator = db.iterator()
  await db.clear()
  await db.put('aa', 'new')
  assert.strictEqual((await iterator.all()).length, 7)
  assert.deepStrictEqual(await db.keys().all(), ['aa'])
})

test('a close of the database closes iterators in any state', async () => {
  for (let round = 0; round < 20; round++) {
    const db = new WindrowLevel(folder())
    await db.batch([...'abc'].map((key) => ({ type: 'put', key, value: key })))
    const ends = []
    for (let i = 0; i < 30; i++) {
      db.iterator()
      ends.push(db.iterator({ highWaterMarkBytes: 0 }).next())
      const used = db.iterator({ highWaterMarkBytes: 0 })
      const goOn = (entry) => entry && used.next().then(goOn, withCode('LEVEL_ITERATOR_NOT_OPEN'))
      ends.push(used.next().then(goOn))
      db.snapshot()
      db.batch().put('d', 'd')
    }
    if (round % 2 === 0) global.gc()
    if (round % 3 === 0) await new Promise((resolve) => setTimeout(resolve, round / 4))
    await db.close()
    await Promise.all(ends)
  }
})
