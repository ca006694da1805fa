'use strict'

// Purses, transfers in transactions, and a counter that is merged.

const assert = require('assert')
const { WindrowLevel } = require('windrow')

async function main () {
  const db = new WindrowLevel('transfers.db', { mergeOperators: { log: 'windrow.append.0a' } })
  const purses = db.keyspace('purses', { valueEncoding: 'json' })
  const log = db.keyspace('log')
  await purses.batch(Array.from({ length: 5 }, (_, i) => ({ type: 'put', key: `purse ${i}`, value: 100 })))
  await log.open()

  const transfer = (from, to, amount) => db.transact(async (transaction) => {
    const [source, target] = await purses.getMany([from, to], { transaction })
    if (source < amount) return false
    await purses.put(from, source - amount, { transaction })
    await purses.put(to, target + amount, { transaction })
    await log.merge('transfers', `${from} -> ${to}: ${amount}`, { transaction })
    return true
  })
  const done = await Promise.all(Array.from({ length: 20 }, (_, i) => {
    return transfer(`purse ${i % 5}`, `purse ${(i + 1 + i % 3) % 5}`, 30)
  }))

  const sum = (await purses.values().all()).reduce((sum, balance) => sum + balance, 0)
  assert.strictEqual(sum, 500)
  assert.strictEqual((await log.get('transfers')).split('\n').length, done.filter(Boolean).length)
  console.log(await purses.iterator().all())
  await db.close()
}

main()
