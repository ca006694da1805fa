'use strict'

// Random calls have the answers of a sorted map.

const assert = require('node:assert')
const { test } = require('node:test')
const { WindrowLevel } = require('windrow')
const { folder, randomFrom } = require('./common')

const SEEDS = Number(process.env.WINDROW_SEEDS ?? 12)
const STEPS = 400

/** The entries of a map in a range, as an iterator gives them. */
function entriesOf (model, { gt, gte, lt, lte, reverse, limit }) {
  let keys = [...model.keys()].sort()
  if (gte !== undefined) keys = keys.filter((key) => key >= gte)
  else if (gt !== undefined) keys = keys.filter((key) => key > gt)
  if (lte !== undefined) keys = keys.filter((key) => key <= lte)
  else if (lt !== undefined) keys = keys.filter((key) => key < lt)
  if (reverse) keys.reverse()
  if (limit !== undefined) keys = keys.slice(0, limit)
  return keys.map((key) => [key, model.get(key)])
}

class History {
  constructor (seed) {
    this.random = randomFrom(seed)
    this.model = new Map()
    this.snapshots = []
    const keyspace = { memtableBytes: 64 << 10, blockBytes: 1024 }
    this.db = new WindrowLevel(folder(), { keyspace })
  }

  key () {
    return Array.from({ length: this.random(4) }, () => 'ab\u00ff'[this.random(3)]).join('')
  }

  value () {
    return 'xyz'[this.random(3)].repeat(this.random(8) * this.random(300))
  }

  chance () {
    return this.random(2) === 0
  }

  range () {
    const range = {}
    for (const bound of ['gt', 'gte', 'lt', 'lte']) {
      if (this.random(4) === 0) range[bound] = this.key()
    }
    range.reverse = this.chance()
    if (this.random(3) === 0) range.limit = this.random(6)
    return range
  }

  /** A state to read: the present one, or that of a snapshot. */
  state () {
    const kept = this.snapshots[this.random(2 * this.snapshots.length + 1)]
    return kept ?? { snapshot: undefined, model: this.model }
  }

  writes () {
    return Array.from({ length: this.random(6) }, () => {
      const key = this.key()
      return this.chance() ? { type: 'put', key, value: this.value() } : { type: 'del', key }
    })
  }

  apply (writes) {
    for (const { type, key, value } of writes) {
      if (type === 'put') this.model.set(key, value)
      else this.model.delete(key)
    }
  }

  steps = {
    put: async () => {
      const [key, value] = [this.key(), this.value()]
      await this.db.put(key, value, { sync: this.random(20) === 0 })
      this.model.set(key, value)
    },

    del: async () => {
      const key = this.key()
      await this.db.del(key)
      this.model.delete(key)
    },

    batch: async () => {
      const writes = this.writes()
      await this.db.batch(writes)
      this.apply(writes)
    },

    chained: async () => {
      const writes = this.writes()
      const batch = this.db.batch()
      if (this.chance()) batch.put('never', 'written').clear()
      for (const { type, key, value } of writes) {
        if (type === 'put') batch.put(key, value)
        else batch.del(key)
      }
      await batch.write()
      this.apply(writes)
    },

    clear: async () => {
      const range = this.range()
      const { snapshot, model } = this.state()
      await this.db.clear(snapshot === undefined ? range : { ...range, snapshot })
      for (const [key] of entriesOf(model, range)) this.model.delete(key)
    },

    get: async () => {
      const key = this.key()
      const { snapshot, model } = this.state()
      assert.strictEqual(await this.db.get(key, { snapshot }), model.get(key))
      assert.strictEqual(this.db.getSync(key, { snapshot }), model.get(key))
      assert.strictEqual(await this.db.has(key, { snapshot }), model.has(key))
    },

    getMany: async () => {
      const keys = Array.from({ length: this.random(8) }, () => this.key())
      const { snapshot, model } = this.state()
      const values = await this.db.getMany(keys, { snapshot })
      assert.deepStrictEqual(values, keys.map((key) => model.get(key)))
      const found = await this.db.hasMany(keys, { snapshot })
      assert.deepStrictEqual(found, keys.map((key) => model.has(key)))
    },

    all: async () => {
      const range = this.range()
      const { snapshot, model } = this.state()
      const highWaterMarkBytes = this.random(3) * this.random(2000)
      const entries = await this.db.iterator({ ...range, snapshot, highWaterMarkBytes }).all()
      assert.deepStrictEqual(entries, entriesOf(model, range))
    },

    // An iterator moves while others write, and sees its own state.
    iterate: async () => {
      const range = this.range()
      delete range.limit
      const { snapshot, model } = this.state()
      const iterator = this.db.iterator({ ...range, snapshot })
      const all = entriesOf(model, range)
      let left = all
      for (let move = this.random(8); move > 0; move--) {
        if (this.random(4) === 0) {
          const target = this.key()
          iterator.seek(target)
          const isInRange = entriesOf(new Map([[target, '']]), range).length === 1
          const follows = range.reverse ? (key) => key <= target : (key) => key >= target
          left = isInRange ? all.filter(([key]) => follows(key)) : []
        } else if (this.chance()) {
          assert.deepStrictEqual(await iterator.next(), left[0])
          left = left.slice(1)
        } else {
          const entries = await iterator.nextv(1 + this.random(4))
          assert.deepStrictEqual(entries, left.slice(0, entries.length))
          assert.ok(entries.length > 0 || left.length === 0)
          left = left.slice(entries.length)
        }
        if (this.random(4) === 0) await this.steps.put()
      }
      await iterator.close()
    },

    snapshot: async () => {
      this.snapshots.push({ snapshot: this.db.snapshot(), model: new Map(this.model) })
      if (this.snapshots.length > 3) await this.snapshots.shift().snapshot.close()
    },

    compact: async () => {
      if (this.chance()) await this.db.flush()
      else await this.db.compactRange('', '\uffff')
    },

    reopen: async () => {
      if (this.chance()) return
      await this.db.close()
      this.snapshots = []
      await this.db.open()
    }
  }
}

for (let seed = 1; seed <= SEEDS; seed++) {
  test(`history ${seed}`, async () => {
    const history = new History(seed)
    await history.db.open()
    const names = Object.keys(history.steps)
    for (let step = 0; step < STEPS; step++) {
      const name = names[history.random(names.length)]
      try {
        await history.steps[name]()
      } catch (error) {
        error.message = `seed ${seed}, step ${step}, ${name}: ${error.message}`
        throw error
      }
    }
    await history.db.close()
  })
}
