'use strict'

// Secondaries: states that do not change, beside a writer here and in another process.

const assert = require('node:assert')
const { spawn } = require('node:child_process')
const { test } = require('node:test')
const { setTimeout: sleep } = require('node:timers/promises')
const { Secondary, WindrowLevel } = require('windrow')
const { folder, opened, withCode } = require('./common')

async function openedSecondary (t, location, options) {
  const secondary = await Secondary.open(location, options)
  t.after(() => secondary.close())
  return secondary
}

const entries = (db) => db.iterator().all()

test('states do not change', async (t) => {
  const db = await opened(t)
  const secondary = await openedSecondary(t, db.location, { cacheBytes: 1 << 20 })
  assert.strictEqual(secondary.location, db.location)
  const empty = await secondary.database()
  await db.batch().put('a', '1').put('b', '2').write()
  const two = await secondary.catchUp()
  await db.del('a')
  await db.flush()
  await db.put('c', '3')
  const after = await secondary.catchUp()
  for (let i = 0; i < 2; i++) {
    assert.deepStrictEqual(await entries(empty), [])
    assert.deepStrictEqual(await entries(two), [['a', '1'], ['b', '2']])
    assert.deepStrictEqual(await entries(after), [['b', '2'], ['c', '3']])
  }
  const snapshot = after.snapshot()
  assert.strictEqual(await after.get('c', { snapshot }), '3')
  await snapshot.close()
  await assert.rejects(two.put('a', '2'), withCode('LEVEL_READ_ONLY'))
  // The close of a state leaves it to others.
  const again = await secondary.database()
  await again.close()
  await assert.rejects(again.get('b'), withCode('LEVEL_DATABASE_NOT_OPEN'))
  await assert.rejects(again.open(), withCode('LEVEL_NOT_SUPPORTED'))
  assert.strictEqual(await after.get('b'), '2')
  await secondary.close()
  await secondary.close()
  for (const call of ['database', 'catchUp', 'follow']) {
    await assert.rejects(secondary[call](1), withCode('LEVEL_SECONDARY_NOT_OPEN'))
  }
  assert.strictEqual(await two.get('a'), '1')
  for (const state of [empty, two, after]) await state.close()
  await assert.rejects(Secondary.open(folder()), withCode('LEVEL_NOT_FOUND'))
  await assert.rejects(Secondary.open(''), TypeError)
})

test('states have keyspaces', async (t) => {
  const db = await opened(t)
  await db.keyspace('users').put('a', '1')
  const secondary = await openedSecondary(t, db.location)
  const state = await secondary.database()
  assert.deepStrictEqual(await state.keyspaceNames(), ['users'])
  const users = state.keyspace('users')
  await db.keyspace('users').put('a', '2')
  const after = await secondary.catchUp()
  assert.strictEqual(await users.get('a'), '1')
  assert.strictEqual(await after.keyspace('users').get('a'), '2')
  await assert.rejects(users.put('a', '3'), withCode('LEVEL_READ_ONLY'))
  await assert.rejects(state.keyspace('missing').open(), withCode('LEVEL_NOT_FOUND'))
  for (const one of [state, after]) await one.close()
  assert.strictEqual(users.status, 'closed')
})

test('a secondary follows by itself', async (t) => {
  const db = await opened(t)
  const secondary = await openedSecondary(t, db.location)
  await secondary.follow(0.001)
  await db.put('a', '1')
  for (let found; found !== '1'; await sleep(1)) {
    const state = await secondary.database()
    found = await state.get('a')
    await state.close()
  }
  await assert.rejects(secondary.follow(-1), TypeError)
})

test('a state has whole batches in their order', async (t) => {
  const db = await opened(t)
  await db.batch().put('x', '0').put('y', '0').write()
  const secondary = await openedSecondary(t, db.location)
  const written = (async () => {
    for (let i = 1; i <= 500; i++) await db.batch().put('x', String(i)).put('y', String(i)).write()
  })()
  for (let before = 0; before < 500;) {
    const state = await secondary.catchUp()
    const [x, y] = await state.getMany(['x', 'y'])
    assert.strictEqual(x, y)
    assert.ok(Number(x) >= before)
    before = Number(x)
    await state.close()
  }
  await written
})

test('a writer in another process goes on', async (t) => {
  const location = folder()
  const program = `
    const { WindrowLevel } = require('windrow')
    const db = new WindrowLevel(${JSON.stringify(location)})
    db.open().then(() => process.send('open'))
    process.on('message', async (key) => {
      await db.put(String(key), '1')
      process.send('written')
    })`
  const writer = spawn(process.execPath, ['-e', program], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  const message = () => new Promise((resolve) => writer.once('message', resolve))
  assert.strictEqual(await message(), 'open')
  const secondary = await openedSecondary(t, location)
  await assert.rejects(new WindrowLevel(location).open(), withCode('LEVEL_LOCKED'))
  for (let i = 1; i < 5; i++) {
    const written = message()
    writer.send(i)
    assert.strictEqual(await written, 'written')
    const state = await secondary.catchUp()
    assert.strictEqual((await entries(state)).length, i)
    await state.close()
  }
  writer.disconnect()
  await new Promise((resolve) => writer.once('exit', resolve))
})
