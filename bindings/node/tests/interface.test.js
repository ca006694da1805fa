'use strict'

// What abstract-level's suite does not ask for: keys of all kinds, codes of errors, options, and closes beside calls.

const assert = require('node:assert')
const { fork } = require('node:child_process')
const fs = require('node:fs')
const path = require('node:path')
const { test } = require('node:test')
const windrow = require('windrow')
const { Backups, Transaction, WindrowLevel } = windrow
const { folder, opened, withCode } = require('./common')

test('keys and values of all kinds come back as they were', async (t) => {
  const db = await opened(t, { keyEncoding: 'buffer', valueEncoding: 'buffer' })
  const kinds = [
    Buffer.alloc(0),
    Buffer.from([0]),
    Buffer.from([0, 0]),
    Buffer.from('plain'),
    Buffer.from('\u{1f30d} \u00e4'),
    Buffer.from([0x80, 0xff, 0xc3]),
    Buffer.alloc(64 * 1024, 7)
  ]
  for (const [position, key] of kinds.entries()) {
    await db.put(key, kinds[kinds.length - 1 - position])
  }
  for (const [position, key] of kinds.entries()) {
    const value = kinds[kinds.length - 1 - position]
    assert.deepStrictEqual(await db.get(key), value)
    assert.deepStrictEqual(db.getSync(key), value)
    assert.strictEqual(await db.has(key), true)
  }
  assert.deepStrictEqual((await db.getMany(kinds)).reverse(), kinds)
  assert.deepStrictEqual(await db.hasMany(kinds), kinds.map(() => true))
  const sorted = kinds.toSorted(Buffer.compare)
  assert.deepStrictEqual(await db.keys().all(), sorted)
  assert.deepStrictEqual(await db.keys({ reverse: true }).all(), sorted.toReversed())
})

test('large values are read and iterated over', async (t) => {
  const db = await opened(t, { valueEncoding: 'view' })
  const large = new Uint8Array(3 << 20).fill(5)
  await db.put('large', large)
  await db.batch([{ type: 'put', key: 'other', value: large }])
  assert.deepStrictEqual(await db.get('large'), large)
  assert.deepStrictEqual(await db.getMany(['other', 'none', 'large']), [large, undefined, large])
  assert.deepStrictEqual(await db.iterator().all(), [['large', large], ['other', large]])
})

test('text that is not Unicode has replacement characters', async (t) => {
  const db = await opened(t)
  await db.put('half \ud83c', 'half \udf0d')
  assert.strictEqual(await db.get('half \ufffd'), 'half \ufffd')
  await db.put('bytes', Buffer.from([0x61, 0xff, 0x62]), { valueEncoding: 'buffer' })
  assert.strictEqual(await db.get('bytes'), 'a\ufffdb')
  assert.strictEqual(db.getSync('bytes'), 'a\ufffdb')
  assert.deepStrictEqual(await db.getMany(['bytes']), ['a\ufffdb'])
  assert.deepStrictEqual(await db.values({ limit: 1 }).all(), ['a\ufffdb'])
})

test('what a caller changes after a call does not count', async (t) => {
  const db = await opened(t, { keyEncoding: 'view', valueEncoding: 'view' })
  const key = Uint8Array.of(1)
  const value = Uint8Array.of(2)
  const written = db.put(key, value)
  const batched = db.batch([{ type: 'put', key: Uint8Array.of(9), value }])
  key[0] = 3
  value[0] = 4
  await Promise.all([written, batched])
  assert.deepStrictEqual(await db.iterator().all(), [
    [Uint8Array.of(1), Uint8Array.of(2)],
    [Uint8Array.of(9), Uint8Array.of(2)]
  ])
})

test('errors have codes', async (t) => {
  const db = await opened(t)
  const long = 'k'.repeat(64 * 1024 + 1)
  for (const call of [
    () => db.put(long, 'value'),
    () => db.get(long),
    () => db.getMany(['a', long]),
    () => db.has(long),
    () => db.del(long),
    () => db.batch([{ type: 'put', key: 'a', value: 'b' }, { type: 'del', key: long }]),
    () => db.batch().put(long, 'value').write(),
    async () => db.getSync(long)
  ]) {
    await assert.rejects(call, withCode('LEVEL_INVALID_ARGUMENT'))
  }
  assert.strictEqual(await db.get('a'), undefined, 'a batch with a wrong write writes nothing')

  const other = (location, options) => new WindrowLevel(location, options).open()
  await assert.rejects(other(db.location), withCode('LEVEL_LOCKED'))
  await assert.rejects(other(folder(), { createIfMissing: false }), withCode('LEVEL_NOT_FOUND'))
  await assert.rejects(
    other(path.join(folder(), 'none'), { createIfMissing: false }),
    withCode('LEVEL_NOT_FOUND')
  )
  const foreign = folder()
  fs.writeFileSync(path.join(foreign, 'notes'), 'mine')
  await assert.rejects(other(foreign), withCode('LEVEL_INVALID_ARGUMENT'))
  for (const options of [
    { durability: 'never' },
    { memoryBudget: -1 },
    { memoryBudget: 'much' },
    { keyspace: { colour: 'red' } },
    { keyspace: { preset: 'fast' } },
    { keyspace: { blockBytes: 1 } }
  ]) {
    await assert.rejects(other(folder(), options), withCode('LEVEL_INVALID_ARGUMENT'))
  }
})

test('an open takes options, too, and leaves those of hooks alone', async () => {
  const db = new WindrowLevel(folder(), { compression: true, ofTheProgram: 1 })
  await assert.rejects(db.open({ memoryBudget: 1 }), withCode('LEVEL_INVALID_ARGUMENT'))
  let found
  db.hooks.postopen.add(async (options) => { found = options.ofTheHook + options.ofTheProgram })
  await db.open({ memoryBudget: 64 << 20, ofTheHook: 5 })
  assert.strictEqual(found, 6)
  await db.close()
})

test('a database that exists can be an error', async () => {
  const location = folder()
  const first = new WindrowLevel(location)
  await first.open()
  await first.close()
  const second = new WindrowLevel(location, { errorIfExists: true })
  await assert.rejects(second.open(), withCode('LEVEL_ALREADY_EXISTS'))
})

test('damage is an error that names the file', async () => {
  const location = folder()
  const db = new WindrowLevel(location, { keyspace: { compression: 'none' } })
  await db.batch(Array.from({ length: 2000 }, (_, i) => ({ type: 'put', key: `key ${i}`, value: 'value '.repeat(20) })))
  await db.flush()
  assert.deepStrictEqual(await db.verify(), [])
  await db.close()
  const tables = fs.readdirSync(location, { recursive: true }).filter((name) => name.endsWith('.table'))
  assert.ok(tables.length > 0, 'there are tables')
  for (const name of tables) {
    const content = fs.readFileSync(path.join(location, name))
    content.fill(0, 100, 20_000)
    fs.writeFileSync(path.join(location, name), content)
  }
  await db.open()
  await assert.rejects(db.iterator().all(), (error) => {
    assert.strictEqual(error.code, 'LEVEL_CORRUPTION')
    return tables.some((name) => error.message.includes(path.basename(name)))
  })
  assert.notDeepStrictEqual(await db.verify(), [])
  await db.close()
})

test('options of the keyspace are recorded, and others stay', async () => {
  const location = folder()
  const open = async (keyspace) => {
    const db = new WindrowLevel(location, { keyspace, durability: 'sync', memoryBudget: 64 << 20 })
    await db.open()
    const stats = await db.stats()
    await db.close()
    return stats
  }
  assert.strictEqual((await open({ compression: 'none', blockBytes: 8192 })).keyspaces.length, 1)
  assert.strictEqual((await open(undefined)).keyspaces[0].name, 'default')
})

test('values expire after the time to live of the keyspace', async (t) => {
  const db = await opened(t, { keyspace: { defaultTtl: 0.05 } })
  await db.put('key', 'value')
  while (await db.has('key')) await new Promise((resolve) => setTimeout(resolve, 5))
  assert.deepStrictEqual(await db.iterator().all(), [])
})

test('a close waits for the calls before it', async () => {
  const calls = {
    get: (db) => db.get('key'),
    getMany: (db) => db.getMany(['key', 'other']),
    has: (db) => db.has('key'),
    hasMany: (db) => db.hasMany(['key']),
    put: (db) => db.put('key', 'new'),
    'put, synced': (db) => db.put('key', 'new', { sync: true }),
    del: (db) => db.del('key'),
    batch: (db) => db.batch([{ type: 'put', key: 'key', value: 'new' }], { sync: true }),
    'chained batch': (db) => db.batch().put('key', 'new').del('other').write(),
    clear: (db) => db.clear(),
    'clear of some': (db) => db.clear({ limit: 1, reverse: true }),
    approximateSize: (db) => db.approximateSize('a', 'z'),
    compactRange: (db) => db.compactRange('a', 'z'),
    flush: (db) => db.flush(),
    persist: (db) => db.persist(),
    verify: (db) => db.verify(),
    stats: (db) => db.stats(),
    next: (db) => db.iterator().next(),
    all: (db) => db.iterator().all()
  }
  const test = async (name, make) => {
    const db = new WindrowLevel(folder())
    await db.put('key', 'value')
    let ended = 0
    const made = make(db).map((call) => call.then(() => ended++))
    await db.close()
    assert.strictEqual(ended, made.length, name)
  }
  for (const [name, make] of Object.entries(calls)) await test(name, (db) => [make(db)])
  await test('all of them, often', (db) => {
    return Array(20).fill(Object.values(calls)).flat().map((make) => make(db))
  })
})

test('a close waits for what waits for other calls', async () => {
  const db = new WindrowLevel(folder())
  const transaction = await db.transaction()
  const other = await db.transaction()
  const backups = await Backups.open(folder())
  const calls = [
    db.put('key', 'value', { transaction }),
    transaction.commit(),
    db.put('other', 'value', { transaction: other }),
    other.rollback(),
    db.backup(backups),
    backups.verify(),
    db.backup(backups)
  ]
  await db.close()
  await Promise.all(calls)
  assert.strictEqual((await backups.list()).length, 2)
  await backups.close()
  await db.open()
  assert.deepStrictEqual(await db.iterator().all(), [['key', 'value']])
  await db.close()
})

test('a transaction that begins at a close begins before it or not at all', async () => {
  for (let i = 0; i < 20; i++) {
    const db = new WindrowLevel(folder())
    await db.open()
    const begun = db.transaction({ locking: i % 2 === 0 })
    const closed = db.close()
    const outcome = await begun.catch((error) => error)
    await closed
    if (outcome instanceof Transaction) {
      await assert.rejects(outcome.commit(), withCode('LEVEL_TRANSACTION_NOT_OPEN'))
    } else {
      assert.strictEqual(outcome.code, 'LEVEL_DATABASE_NOT_OPEN')
    }
    assert.strictEqual(db.status, 'closed')
  }
})

test('the package has the classes of its types', () => {
  const types = fs.readFileSync(path.join(path.dirname(require.resolve('windrow')), 'index.d.ts'), 'utf8')
  const classes = Array.from(types.matchAll(/^export (?:abstract )?class (\w+)/gm), ([, name]) => name)
  assert.deepStrictEqual(Object.keys(windrow).sort(), classes.sort())
})

test('all options are taken by their names', async () => {
  const source = path.join(__dirname, '../../../crates/windrow-ffi/src/settings.rs')
  const lists = fs.readFileSync(source, 'utf8').split('= options! {').slice(1)
  const types = fs.readFileSync(path.join(path.dirname(require.resolve('windrow')), 'index.d.ts'), 'utf8')
  const [database, keyspace] = lists.map((list) => Array.from(list.matchAll(/^ {4}"(\w+)": /gm), ([, name]) => name))
  assert.ok(database.length >= 20 && keyspace.length >= 17)
  const test = async (name, options) => {
    assert.ok(new RegExp(`^  ${camelCase(name)}\\?: `, 'm').test(types), `the types have ${name}`)
    await assert.rejects(new WindrowLevel(folder(), options).open(), (error) => {
      const unfit = `${name}: "no such word" is not `
      return error.cause.code === 'LEVEL_INVALID_ARGUMENT' && error.cause.message.includes(unfit)
    }, name)
  }
  for (const name of database) {
    // abstract-level makes flags of these.
    if (name !== 'create_if_missing' && name !== 'error_if_exists') await test(name, { [camelCase(name)]: 'no such word' })
  }
  for (const name of keyspace) await test(name, { keyspace: { [camelCase(name)]: 'no such word' } })
})

function camelCase (name) {
  return name.replace(/_(\w)/g, (_, letter) => letter.toUpperCase())
}

test('without logs there are no files of theirs, and a persist is what survives', async () => {
  const options = { log: false, jobLogBytes: 0, statusInterval: 0, latencyInterval: 0, keyspace: { mediumOrder: 'written' } }
  const db = new WindrowLevel(folder(), options)
  await db.put('a', '1')
  await db.persist()
  await db.put('b', '2')
  await assert.rejects(db.put('c', '3', { sync: true }), withCode('LEVEL_INVALID_ARGUMENT'))
  await db.close()
  for (const name of ['LOG', 'STATUS']) assert.ok(!fs.existsSync(path.join(db.location, name)), name)
  await db.open()
  assert.deepStrictEqual(await db.iterator().all(), [['a', '1']])
  await db.close()
})

test('everything is an error after a close', async () => {
  const db = new WindrowLevel(folder())
  await db.put('key', 'value')
  const iterator = db.iterator()
  const batch = db.batch().put('other', 'value')
  const snapshot = db.snapshot()
  const sublevel = db.sublevel('sub')
  await db.close()
  for (const call of [
    () => db.get('key'),
    async () => db.getSync('key'),
    () => db.getMany(['key']),
    () => db.has('key'),
    () => db.hasMany(['key']),
    () => db.put('key', 'value'),
    () => db.del('key'),
    () => db.batch([{ type: 'del', key: 'key' }]),
    async () => db.batch(),
    () => db.clear(),
    async () => db.iterator(),
    async () => db.snapshot(),
    () => db.approximateSize('a', 'z'),
    () => db.compactRange('a', 'z'),
    () => db.flush(),
    () => db.persist(),
    () => db.verify(),
    () => db.stats(),
    () => db.checkpoint(folder()),
    () => sublevel.get('key')
  ]) {
    await assert.rejects(call, withCode('LEVEL_DATABASE_NOT_OPEN'))
  }
  await assert.rejects(iterator.next(), withCode('LEVEL_ITERATOR_NOT_OPEN'))
  await assert.rejects(() => batch.write(), withCode('LEVEL_BATCH_NOT_OPEN'))
  // Also in a later open.
  await db.open()
  await assert.rejects(db.get('key', { snapshot }), withCode('LEVEL_SNAPSHOT_NOT_OPEN'))
  await assert.rejects(iterator.next(), withCode('LEVEL_ITERATOR_NOT_OPEN'))
  assert.strictEqual(await db.get('key'), 'value')
  await db.close()
  await db.close()
})

test('a snapshot of another database is an error', async (t) => {
  const [db, other] = [await opened(t), await opened(t)]
  const snapshot = other.snapshot()
  await assert.rejects(db.get('key', { snapshot }), withCode('LEVEL_INVALID_ARGUMENT'))
  for (const iterator of [db.iterator({ snapshot }), db.keys({ snapshot })]) {
    await assert.rejects(iterator.next(), withCode('LEVEL_INVALID_ARGUMENT'))
    await assert.rejects(iterator.nextv(3), withCode('LEVEL_INVALID_ARGUMENT'))
  }
  await assert.rejects(db.get('key', { snapshot: {} , valueEncoding: 'utf8' }), TypeError)
})

test('a checkpoint is a database of its own', async (t) => {
  const db = await opened(t)
  await db.put('key', 'value', { sync: true })
  const location = path.join(folder(), 'copy')
  await db.checkpoint(location)
  await db.put('key', 'other')
  const copy = new WindrowLevel(location, { createIfMissing: false })
  assert.strictEqual(await copy.get('key'), 'value')
  await copy.close()
  await assert.rejects(db.checkpoint(location), withCode('LEVEL_ALREADY_EXISTS'))
})

test('a database is removed with its folder', async () => {
  const db = new WindrowLevel(folder())
  await db.put('key', 'value')
  await assert.rejects(WindrowLevel.destroy(db.location), withCode('LEVEL_LOCKED'))
  await db.close()
  await WindrowLevel.destroy(db.location)
  assert.ok(!fs.existsSync(db.location))
  await WindrowLevel.destroy(path.join(folder(), 'none'))
  for (const location of [undefined, '', {}]) {
    await assert.rejects(WindrowLevel.destroy(location), TypeError)
    assert.throws(() => new WindrowLevel(location), TypeError)
  }
})

test('another process is refused, and takes over after the end of this one', async () => {
  const db = new WindrowLevel(folder())
  await db.put('key', 'value')
  const child = () => new Promise((resolve, reject) => {
    const child = fork(path.join(__dirname, 'other-process.js'), [db.location])
    let found
    child.on('message', (message) => { found = message })
    child.on('exit', (code) => code === 0 ? resolve(found) : reject(new Error(`exit ${code}`)))
  })
  assert.deepStrictEqual(await child(), { code: 'LEVEL_LOCKED' })
  await db.close()
  assert.deepStrictEqual(await child(), { value: 'value' })
  // The child has not closed it.
  await db.open()
  assert.strictEqual(await db.get('child'), 'was here')
  await db.close()
})

test("a database has the form of those of LevelDB's interfaces", async () => {
  // The keyspace and the empty key have the names that the library for C uses.
  const db = new WindrowLevel(folder())
  await db.batch([{ type: 'put', key: '', value: 'empty' }, { type: 'put', key: 'a', value: 'b' }])
  const { keyspaces } = await db.stats()
  assert.deepStrictEqual(keyspaces.map(({ name }) => name).sort(), ['default', 'leveldb.empty-key'])
  await db.close()
})
