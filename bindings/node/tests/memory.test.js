'use strict'

// Opens, iterators, errors and all other calls need no more memory the more often they are made.

const assert = require('node:assert')
const fs = require('node:fs')
const path = require('node:path')
const { test } = require('node:test')
const { WindrowLevel } = require('windrow')
const { folder, opened } = require('./common')

// What the allocator and the heap of JavaScript take and give back as they like, in bytes.
const SLACK = { rss: 24 << 20, heapUsed: 1 << 20, external: 1 << 20 }

/** What the process uses after a collection. */
async function collected () {
  for (let i = 0; i < 4; i++) {
    global.gc()
    await new Promise((resolve) => setImmediate(resolve))
  }
  const { rss, heapUsed, external } = process.memoryUsage()
  return { rss, heapUsed, external }
}

/**
 * Runs the work often. What the first half leaves may be kept for the next ones; the second half may leave nothing but the slack.
 * `bytes` is less than what one run would leave if it left anything, so that a leak is found whatever the slack if the count is large.
 * The result is what each half has left.
 */
async function doesNotGrow (name, count, bytes, work) {
  const half = Math.ceil(count / 2)
  for (let i = 0; i < Math.min(count, 10_000); i++) await work(i)
  const measured = [await collected()]
  for (let i = 0; i < 2; i++) {
    for (let j = 0; j < half; j++) await work(j)
    measured.push(await collected())
  }
  const grown = ([before, after]) => Object.fromEntries(Object.keys(SLACK).map((part) => [part, after[part] - before[part]]))
  const halves = [grown(measured.slice(0, 2)), grown(measured.slice(1, 3))]
  for (const [part, slack] of Object.entries(SLACK)) {
    assert.ok(halves[1][part] < slack + bytes * half, `${name}: ${part} has grown by ${halves.map((half) => half[part])} bytes`)
  }
  return halves
}

/** As doesNotGrow, and says by how much. The environment variable WINDROW_TIMES is how often: memory.sh sets it to a million. */
async function leavesNothing (t, name, count, bytes, work) {
  count = Number(process.env.WINDROW_TIMES ?? count)
  const began = Date.now()
  const halves = await doesNotGrow(name, count, bytes, work)
  const text = ({ rss, heapUsed, external }) => `${heapUsed} bytes of the heap, ${external} external and ${rss} resident bytes`
  const seconds = Math.round((Date.now() - began) / 1000)
  t.diagnostic(`${name}: ${count} times in ${seconds} s; the first half left ${text(halves[0])}; the second ${text(halves[1])}`)
}

test('errors leave nothing', async (t) => {
  const db = await opened(t)
  const long = 'k'.repeat(65_537)
  await leavesNothing(t, 'errors', 20_000, 8, async () => {
    try {
      db.getSync(long)
    } catch (error) {
      return
    }
    assert.fail('no error')
  })
})

test('cursors leave nothing', async (t) => {
  const db = await opened(t)
  await db.put('a', 'b'.repeat(10_000))
  await leavesNothing(t, 'cursors', 20_000, 16, async () => {
    const iterator = db.iterator()
    await iterator.next()
    await iterator.close()
  })
})

test('transactions leave nothing', async (t) => {
  const db = await opened(t)
  await leavesNothing(t, 'transactions', 2_000, 64, async (i) => {
    const transaction = await db.transaction({ locking: i % 2 === 0 })
    await db.put('a', 'c', { transaction })
    await db.iterator({ transaction }).next()
    await transaction.rollback()
  })
})

test('opens leave nothing', async (t) => {
  // In memory if the system has such a place: an open there waits for no disk.
  const shared = '/dev/shm'
  const location = fs.existsSync(shared) ? fs.mkdtempSync(path.join(shared, 'windrow-')) : folder()
  t.after(() => fs.rmSync(location, { recursive: true }))
  await leavesNothing(t, 'opens', 500, 256, async () => {
    const db = new WindrowLevel(location)
    await db.open()
    await db.close()
  })
})

test('calls and objects do not need more and more memory', async (t) => {
  const db = await opened(t)
  const value = Buffer.alloc(100_000, 1)
  await db.batch([...'abcdefghij'].map((key) => ({ type: 'put', key, value })))
  const bytes = { valueEncoding: 'buffer' }
  const long = 'k'.repeat(70_000)
  const failed = (call) => call.then(() => assert.fail('no error'), () => {})

  await doesNotGrow('get', 3000, 64, () => db.get('a', bytes))
  await doesNotGrow('getSync', 3000, 64, async () => db.getSync('a', bytes))
  await doesNotGrow('getMany', 600, 64, () => db.getMany(['a', 'b', 'c'], bytes))
  await doesNotGrow('all', 600, 64, () => db.iterator(bytes).all())
  await doesNotGrow('put', 600, 64, (i) => db.put('a', value))
  await doesNotGrow('batch', 600, 64, () => db.batch([{ type: 'put', key: 'a', value }]))
  await doesNotGrow('chained batches that nobody writes', 600, 64, async () => {
    await db.batch().put('a', value).close()
  })
  await doesNotGrow('snapshots', 20_000, 64, () => db.snapshot().close())
  await doesNotGrow('changes', 300, 64, async () => {
    const changes = db.changes(db.snapshot().sequence + 1)
    await changes.wait(0.001)
    await db.put('a', value)
    await changes.wait()
    await changes.close()
  })
  await doesNotGrow('errors', 1500, 64, () => failed(db.get(long)))
  await doesNotGrow('aborted iterators', 3000, 64, async () => {
    const controller = new AbortController()
    const iterator = db.iterator({ signal: controller.signal })
    const read = iterator.next()
    controller.abort()
    await failed(read)
    await iterator.close()
  })
})

test('opens do not need more and more memory', async () => {
  const location = folder()
  await doesNotGrow('opens', 60, 256, async () => {
    const db = new WindrowLevel(location)
    await db.put('key', 'value')
    db.iterator()
    await db.close()
  })
  const db = new WindrowLevel(location)
  await db.open()
  await doesNotGrow('refused opens', 200, 256, async () => {
    await assert.rejects(new WindrowLevel(location).open())
  })
  await db.close()
})

test('the garbage collector closes what nobody has closed', async () => {
  const location = folder();
  await (async () => {
    const db = new WindrowLevel(location)
    await db.put('key', 'value')
    db.iterator()
    db.snapshot()
  })()
  const next = new WindrowLevel(location)
  for (let tries = 0; ; tries++) {
    assert.ok(tries < 200, 'the database is closed')
    global.gc()
    await new Promise((resolve) => setTimeout(resolve, 5))
    try {
      await next.open()
      break
    } catch {}
  }
  assert.strictEqual(await next.get('key'), 'value')
  await next.close()
})
