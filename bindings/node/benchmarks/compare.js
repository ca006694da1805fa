'use strict'

// Windrow beside classic-level: puts, gets, batches and iterations of small entries, in turns.
//
// Both do the same rounds, one after the other, so that a disturbance of the machine meets both. A figure is the median of
// its rounds. Both have no Bloom filter but their own, and no compression. No write is synced, but those of "put, synced", of
// which the first also makes durable what the log has of the puts before.

const fs = require('fs')
const os = require('os')
const path = require('path')
const { parseArgs } = require('util')

const { values: given } = parseArgs({
  options: {
    entries: { type: 'string', default: '100000' },
    rounds: { type: 'string', default: '7' },
    'value-bytes': { type: 'string', default: '100' },
    // Counts the time of all threads on a processor, for a machine on which other programs run.
    busy: { type: 'boolean', default: false }
  }
})
const count = Number(given.entries)
const rounds = Number(given.rounds)
const value = Array.from({ length: Number(given['value-bytes']) }, (_, i) => String.fromCharCode(97 + i % 26)).join('')
const keys = Array.from({ length: count }, (_, i) => `key-${String(i).padStart(12, '0')}`)

const libraries = {
  windrow: (folder) => new (require('windrow').WindrowLevel)(folder, { keyspace: { compression: 'none' } }),
  'classic-level': (folder) => new (require('classic-level').ClassicLevel)(folder, { compression: false })
}

const sum = async (iterator, each) => {
  let found = 0
  for await (const entry of iterator) if (each(entry)) found++
  if (found !== count) throw new Error(`${found} entries`)
}

async function inGroups (chosen, size, work) {
  for (let i = 0; i < chosen.length; i += size) {
    await Promise.all(chosen.slice(i, i + size).map(work))
  }
}

const check = (found) => {
  if (found !== value) throw new Error('a wrong value')
}

// What is measured: the number of operations, and the work with `chosen` keys, which are in no order.
const works = {
  'batch of 1000': [count, async (db) => {
    for (let i = 0; i < count; i += 1000) {
      await db.batch(keys.slice(i, i + 1000).map((key) => ({ type: 'put', key, value })))
    }
  }],
  'chained batch of 1000': [count, async (db) => {
    for (let i = 0; i < count; i += 1000) {
      const batch = db.batch()
      for (const key of keys.slice(i, i + 1000)) batch.put(key, value)
      await batch.write()
    }
  }],
  put: [count / 5, async (db, chosen) => { for (const key of chosen) await db.put(key, value) }],
  'put, 4 at once': [count / 5, (db, chosen) => inGroups(chosen, 4, (key) => db.put(key, value))],
  'put, 100 at once': [count / 5, (db, chosen) => inGroups(chosen, 100, (key) => db.put(key, value))],
  'put, synced, the first': [1, (db, chosen) => db.put(chosen[0], value, { sync: true })],
  'put, synced': [100, async (db, chosen) => { for (const key of chosen.slice(0, 100)) await db.put(key, value, { sync: true }) }],
  settle: null,
  get: [count / 5, async (db, chosen) => { for (const key of chosen) check(await db.get(key)) }],
  'get, 100 at once': [count / 5, (db, chosen) => inGroups(chosen, 100, async (key) => check(await db.get(key)))],
  getSync: [count / 5, async (db, chosen) => { for (const key of chosen) check(db.getSync(key)) }],
  'getMany of 1000': [count / 5, async (db, chosen) => {
    for (let i = 0; i < chosen.length; i += 1000) (await db.getMany(chosen.slice(i, i + 1000))).forEach(check)
  }],
  'has': [count / 5, async (db, chosen) => { for (const key of chosen) if (!await db.has(key)) throw new Error(key) }],
  'iterator, next': [count, (db) => sum(db.iterator(), ([, found]) => found === value)],
  'iterator, nextv(1000)': [count, async (db) => {
    const iterator = db.iterator()
    let found = 0
    for (let entries; (entries = await iterator.nextv(1000)).length > 0;) found += entries.length
    await iterator.close()
    if (found !== count) throw new Error(`${found} entries`)
  }],
  'iterator, all': [count, async (db) => {
    if ((await db.iterator().all()).length !== count) throw new Error('wrong')
  }],
  'iterator, buffers': [count, (db) => sum(db.iterator({ keyEncoding: 'buffer', valueEncoding: 'buffer' }), ([key]) => key.length === 16)],
  keys: [count, (db) => sum(db.keys(), (key) => key.length === 16)],
  'iterator, reverse': [count, (db) => sum(db.iterator({ reverse: true }), ([, found]) => found === value)],
  'seek and next': [count / 10, async (db, chosen) => {
    const iterator = db.iterator()
    for (const key of chosen.slice(0, count / 10)) {
      iterator.seek(key)
      if ((await iterator.next())[0] !== key) throw new Error(key)
    }
    await iterator.close()
  }],
  'iterator for 10 entries': [count / 50, async (db, chosen) => {
    for (const key of chosen.slice(0, count / 50)) await db.iterator({ gte: key, limit: 10 }).all()
  }]
}

function shuffled (all) {
  const copy = [...all]
  for (let i = copy.length - 1; i > 0; i--) {
    const j = Math.floor(Math.random() * (i + 1))
    ;[copy[i], copy[j]] = [copy[j], copy[i]]
  }
  return copy
}

const clock = given.busy
  ? () => { const { user, system } = process.cpuUsage(); return user + system }
  : () => Number(process.hrtime.bigint()) / 1000

const median = (figures) => figures.toSorted((a, b) => a - b)[figures.length >> 1]

async function main () {
  const opened = {}
  for (const [name, open] of Object.entries(libraries)) {
    opened[name] = open(fs.mkdtempSync(path.join(os.tmpdir(), 'compare-')))
    await opened[name].open()
  }
  const figures = {}
  for (let round = 0; round < rounds; round++) {
    const chosen = shuffled(keys).slice(0, count / 5)
    for (const [what, work] of Object.entries(works)) {
      for (const [name, db] of shuffled(Object.entries(opened))) {
        if (work === null) {
          await db.compactRange('', '\uffff')
          continue
        }
        const [operations, run] = work
        const start = clock()
        await run(db, chosen)
        const took = (clock() - start) / operations
        ;((figures[what] ??= {})[name] ??= []).push(took)
      }
    }
  }
  console.log(`microseconds for an operation, median of ${rounds}; and how many times as long as Windrow`)
  for (const [what, byName] of Object.entries(figures)) {
    const [windrow, classic] = Object.keys(libraries).map((name) => median(byName[name]))
    const cells = [windrow.toFixed(2), classic.toFixed(2), (classic / windrow).toFixed(2)]
    console.log(what.padEnd(26) + cells.map((cell) => cell.padStart(12)).join(''))
  }
  for (const db of Object.values(opened)) {
    await db.close()
    fs.rmSync(db.location, { recursive: true })
  }
}

main()
