'use strict'

// Backups: what they hold, what a list says, damage, closes, and two that want one folder.

const assert = require('node:assert')
const fs = require('node:fs')
const path = require('node:path')
const { test } = require('node:test')
const { Backups, WindrowLevel } = require('windrow')
const { folder, opened, withCode } = require('./common')

/** Open backups in a new folder, which the test closes at its end. */
async function openedBackups (t, options) {
  const backups = await Backups.open(path.join(folder(), 'backups'), options)
  t.after(() => backups.close())
  return backups
}

/** The entries of a backup. */
async function restored (backups, number) {
  const location = path.join(folder(), 'restored')
  await backups.restore(location, number)
  const db = new WindrowLevel(location, { createIfMissing: false })
  const entries = await db.iterator().all()
  await db.close()
  return entries
}

test('a restore gives the state of its backup', async (t) => {
  const [db, backups] = [await opened(t), await openedBackups(t)]
  await db.put('a', '1')
  assert.strictEqual(await db.backup(backups), 1)
  await db.put('b', '2')
  assert.strictEqual(await db.backup(backups), 2)
  await db.clear()
  assert.deepStrictEqual(await restored(backups, 1), [['a', '1']])
  assert.deepStrictEqual(await restored(backups), [['a', '1'], ['b', '2']])
  await assert.rejects(backups.restore(db.location), withCode('LEVEL_ALREADY_EXISTS'))
  await assert.rejects(backups.restore(path.join(folder(), 'none'), 3), withCode('LEVEL_NOT_FOUND'))
})

test('a list says what each backup is', async (t) => {
  const [db, backups] = [await opened(t), await openedBackups(t)]
  assert.deepStrictEqual(await backups.list(), [])
  const began = Date.now()
  for (const value of ['1', '2', '3']) {
    await db.put('a', value)
    await db.backup(backups)
  }
  const listed = await backups.list()
  assert.deepStrictEqual(listed.map(({ number }) => number), [1, 2, 3])
  for (const { created, sequence, files, bytes, ownBytes, error } of listed) {
    assert.ok(created.getTime() >= began - 1000 && created.getTime() <= Date.now() + 1000)
    assert.ok(sequence > 0 && files > 0 && bytes > ownBytes && error === undefined)
  }
  assert.ok(listed[0].sequence < listed[1].sequence && listed[1].sequence < listed[2].sequence)
})

test('backups are removed by count, age and number', async (t) => {
  const [db, backups] = [await opened(t), await openedBackups(t)]
  await assert.rejects(backups.restore('unused'), withCode('LEVEL_NOT_FOUND'))
  for (let made = 0; made < 4; made++) await db.backup(backups)
  assert.deepStrictEqual(await backups.removeOlder(3600), [])
  assert.deepStrictEqual(await backups.removeOlder(Infinity), [])
  assert.deepStrictEqual(await backups.keepNewest(3), [1])
  assert.strictEqual(await backups.remove(3), undefined)
  await assert.rejects(backups.remove(3), withCode('LEVEL_NOT_FOUND'))
  await assert.rejects(backups.keepNewest(0), withCode('LEVEL_INVALID_ARGUMENT'))
  await new Promise((resolve) => setTimeout(resolve, 10))
  assert.deepStrictEqual(await backups.removeOlder(0), [2])
  assert.deepStrictEqual((await backups.list()).map(({ number }) => number), [4])
})

test('arguments of other types are errors', async (t) => {
  const [db, backups] = [await opened(t), await openedBackups(t)]
  for (const wrong of [-1, 0.5, NaN, '1', 2 ** 53, null]) {
    await assert.rejects(backups.remove(wrong), TypeError)
    await assert.rejects(backups.verify(wrong), TypeError)
    await assert.rejects(backups.restore('unused', wrong), TypeError)
    await assert.rejects(backups.keepNewest(wrong), TypeError)
    await assert.rejects(Backups.open(folder(), { bytesPerSecond: wrong }), TypeError)
  }
  for (const wrong of [-1, NaN, '1', undefined]) await assert.rejects(backups.removeOlder(wrong), TypeError)
  for (const wrong of [undefined, '', {}]) {
    await assert.rejects(backups.restore(wrong), TypeError)
    await assert.rejects(Backups.open(wrong), TypeError)
    await assert.rejects(db.backup(wrong), TypeError)
  }
  assert.ok(!fs.existsSync('unused'))
})

test('damage is named by the check, the list and a restore', async (t) => {
  const [db, backups] = [await opened(t), await openedBackups(t)]
  await db.put('a', '1')
  await db.backup(backups)
  await db.backup(backups)
  assert.deepStrictEqual(await backups.verify(), [])
  const manifest = path.join(backups.location, '000001.backup')
  const content = fs.readFileSync(manifest)
  content[20] ^= 1
  fs.writeFileSync(manifest, content)
  const damage = await backups.verify()
  assert.strictEqual(damage.length, 1)
  assert.match(damage[0], /000001\.backup/)
  assert.deepStrictEqual(await backups.verify(1), damage)
  assert.deepStrictEqual(await backups.verify(2), [])
  const [first, second] = await backups.list()
  assert.strictEqual(first.error.code, 'LEVEL_CORRUPTION')
  assert.match(first.error.message, /000001\.backup/)
  assert.strictEqual(second.error, undefined)
  await assert.rejects(backups.restore(path.join(folder(), 'none'), 1), withCode('LEVEL_CORRUPTION'))
  assert.deepStrictEqual(await restored(backups), [['a', '1']])
})

test('a folder belongs to one that writes, or to readers', async (t) => {
  const [db, backups] = [await opened(t), await openedBackups(t)]
  const { location } = backups
  for (const readOnly of [false, true]) {
    await assert.rejects(Backups.open(location, { readOnly }), withCode('LEVEL_LOCKED'))
  }
  await db.backup(backups)
  await Promise.all([backups.close(), backups.close()])
  for (const call of [
    () => backups.list(),
    () => backups.verify(),
    () => backups.restore(folder()),
    () => backups.keepNewest(1),
    () => db.backup(backups)
  ]) {
    await assert.rejects(call, withCode('LEVEL_BACKUPS_NOT_OPEN'))
  }
  const [one, other] = [await Backups.open(location, { readOnly: true }), await Backups.open(location, { readOnly: true })]
  assert.deepStrictEqual(await one.list(), await other.list())
  await assert.rejects(db.backup(one), withCode('LEVEL_READ_ONLY'))
  await assert.rejects(other.remove(1), withCode('LEVEL_READ_ONLY'))
  await one.close()
  await other[Symbol.asyncDispose]()
  await assert.rejects(Backups.open(path.join(folder(), 'none'), { readOnly: true }), withCode('LEVEL_NOT_FOUND'))
})

test('calls wait for their turn, and a close for the calls before it', async (t) => {
  const [db, backups] = [await opened(t), await openedBackups(t, { bytesPerSecond: 4 << 20 })]
  await db.put('a', 'x'.repeat(1 << 20))
  const calls = [db.backup(backups), db.backup(backups), backups.remove(7), backups.list()]
  const closed = backups.close()
  await assert.rejects(backups.list(), withCode('LEVEL_BACKUPS_NOT_OPEN'))
  const outcomes = await Promise.allSettled(calls)
  assert.deepStrictEqual(outcomes.slice(0, 2).map(({ value }) => value), [1, 2])
  assert.strictEqual(outcomes[2].reason.code, 'LEVEL_NOT_FOUND')
  assert.strictEqual(outcomes[3].value.length, 2)
  await closed
  await (await Backups.open(backups.location)).close()
})

test('a closed database has no new backups', async (t) => {
  const backups = await openedBackups(t)
  const db = new WindrowLevel(folder())
  // A database that opens is awaited.
  assert.strictEqual(await db.backup(backups), 1)
  await db.close()
  await assert.rejects(db.backup(backups), withCode('LEVEL_DATABASE_NOT_OPEN'))
  assert.strictEqual((await backups.list()).length, 1)
})
