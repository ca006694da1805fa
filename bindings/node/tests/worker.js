'use strict'

// What the workers of threads.test.js do.

const assert = require('node:assert')
const { parentPort, workerData } = require('node:worker_threads')
const { WindrowLevel } = require('windrow')

const { work, location, options, number, count, locking } = workerData
const db = new WindrowLevel(location, options)

const works = {
  async open () {
    try {
      await db.open()
    } catch (error) {
      return error.cause.code
    }
    await db.close()
    return 'opened'
  },

  async write () {
    for (let i = 0; i < count; i++) await db.put(`${number} ${i}`, 'value')
    await db.close()
  },

  async transact () {
    await db.open()
    for (let i = 0; i < count; i++) {
      await db.transact(async (transaction) => {
        const key = String(i % 2)
        const sum = Number(await db.get(key, { transaction, forUpdate: true }))
        await db.put(key, String(sum + 1), { transaction })
      }, { locking })
    }
    await db.close()
  },

  async reopen () {
    for (let i = 0; i < count; i++) {
      await db.open()
      await db.put('key', 'value')
      await db.close()
    }
    return 'closed'
  },

  async leave () {
    await db.put('left', 'behind')
    const iterator = db.iterator()
    await iterator.next()
    db.snapshot()
    setInterval(() => {}, 1000)
    return 'ready'
  },

  async 'write on' () {
    await db.put('left', 'behind')
    parentPort.postMessage('ready')
    for (;;) await Promise.all(Array.from({ length: 50 }, (_, key) => db.put(`${key}`, 'value')))
  },

  async 'use after close' () {
    await db.put('key', 'value')
    const iterator = db.iterator()
    await db.close()
    for (const call of [() => db.get('key'), () => iterator.next(), async () => db.getSync('key')]) {
      await assert.rejects(call, /not open/)
    }
    return 'errors'
  }
}

works[work]().then((outcome) => parentPort.postMessage(outcome))
