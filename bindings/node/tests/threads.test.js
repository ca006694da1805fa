'use strict'

// Workers: each has its own objects, and a database is refused or shared.

const assert = require('node:assert')
const path = require('node:path')
const { test } = require('node:test')
const { Worker } = require('node:worker_threads')
const { WindrowLevel } = require('windrow')
const { folder, withCode } = require('./common')

/** Starts a worker that does the work of this name (worker.js). Its outcome is the last message. */
function start (work, data) {
  const worker = new Worker(path.join(__dirname, 'worker.js'), { workerData: { work, ...data } })
  let last
  worker.on('message', (message) => { last = message })
  const ended = new Promise((resolve, reject) => {
    worker.on('error', reject)
    worker.on('exit', () => resolve(last))
  })
  return { worker, ended, started: new Promise((resolve) => worker.once('message', resolve)) }
}

test('a database that is open in one thread is refused in another', async () => {
  const db = new WindrowLevel(folder())
  await db.open()
  assert.strictEqual(await start('open', { location: db.location }).ended, 'LEVEL_LOCKED')
  // Sharing needs the option on both sides.
  const options = { multithreading: true }
  assert.strictEqual(await start('open', { location: db.location, options }).ended, 'LEVEL_LOCKED')
  await db.close()
  assert.strictEqual(await start('open', { location: db.location }).ended, 'opened')
})

test('threads share a database, and the last close closes it', async () => {
  const options = { multithreading: true }
  const db = new WindrowLevel(folder(), options)
  await db.put('', 'of the first')
  const location = db.location
  const workers = Array.from({ length: 4 }, (_, number) => start('write', { location, options, number, count: 500 }))
  for (let i = 0; i < 500; i++) await db.put(`main ${i}`, 'value')
  await Promise.all(workers.map(({ ended }) => ended))
  assert.strictEqual((await db.keys().all()).length, 2501)
  assert.strictEqual(await db.get(''), 'of the first')
  const alone = new WindrowLevel(location)
  await assert.rejects(alone.open(), withCode('LEVEL_LOCKED'))
  const fresh = new WindrowLevel(location, { ...options, errorIfExists: true })
  await assert.rejects(fresh.open(), withCode('LEVEL_ALREADY_EXISTS'))
  await db.close()
  await alone.open()
  assert.strictEqual((await alone.keys().all()).length, 2501)
  await alone.close()
})

test('a close in one thread does not end the calls of another', async () => {
  const options = { multithreading: true }
  const db = new WindrowLevel(folder(), options)
  const other = new WindrowLevel(db.location, options)
  await db.put('key', 'value')
  await other.open()
  const iterator = other.iterator()
  await db.close()
  await assert.rejects(db.get('key'), withCode('LEVEL_DATABASE_NOT_OPEN'))
  assert.deepStrictEqual(await iterator.all(), [['key', 'value']])
  await other.close()
})

test('opens and closes of a shared database take turns', async () => {
  const options = { multithreading: true }
  const location = folder()
  const workers = Array.from({ length: 8 }, () => start('reopen', { location, options, count: 20 }))
  const ends = await Promise.all(workers.map(({ ended }) => ended))
  assert.deepStrictEqual(ends, ends.map(() => 'closed'))
  const alone = new WindrowLevel(location)
  await alone.open()
  await alone.close()
})

test('the end of a worker closes its database', async () => {
  const location = folder()
  for (const [work, options] of [['leave', {}], ['leave', { multithreading: true }], ['write on', {}], ['write on', { multithreading: true }]]) {
    const { worker, started, ended } = start(work, { location, options })
    await started
    await worker.terminate()
    await ended
    const db = new WindrowLevel(location)
    await db.open()
    assert.strictEqual(await db.get('left'), 'behind', work)
    await db.clear()
    await db.close()
  }
})

test('use after a close is an error in workers, too', async () => {
  assert.strictEqual(await start('use after close', { location: folder() }).ended, 'errors')
})
