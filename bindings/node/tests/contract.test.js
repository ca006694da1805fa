'use strict'

// The contract suite of all bindings: see bindings/contract/README.md.
//
// The keyspaces of the suite are beside that of the database. Snapshots and transactions are options of calls. The package has no
// prepared transactions, so it does not run their history. It has no changes of one key either: it writes what they write.

const assert = require('node:assert')
const path = require('node:path')
const { test } = require('node:test')
const { WindrowLevel } = require('windrow')
const { folder, withCode } = require('./common')

const suite = require(path.join(__dirname, '../../contract/suite.json'))

/** Histories of what the package does not have. */
const LEFT_OUT = ['prepared transactions']

const CODES = {
  Closed: 'LEVEL_DATABASE_NOT_OPEN',
  Conflict: 'LEVEL_CONFLICT',
  InvalidArgument: 'LEVEL_INVALID_ARGUMENT',
  Locked: 'LEVEL_LOCKED',
  NotFound: 'LEVEL_NOT_FOUND',
  TimedOut: 'LEVEL_TIMED_OUT'
}

/** The code of the error of a step. The close of a database ends its transactions. */
function code (step) {
  if (step.error === 'Closed' && step.do === 'commit') return 'LEVEL_TRANSACTION_NOT_OPEN'
  return CODES[step.error]
}

/** Bytes of the suite. */
function decoded (found) {
  if (found === null || found === undefined) return undefined
  return typeof found === 'string' ? Buffer.from(found, 'hex') : Buffer.alloc(found.times, found.byte, 'hex')
}

/** A write of the suite, with its bytes. */
function expectedWrite (write) {
  const isBytes = (name) => ['key', 'value', 'operand', 'start', 'end'].includes(name)
  return Object.fromEntries(Object.entries(write).map(([name, value]) => [name, isBytes(name) ? decoded(value) : value]))
}

/** The bounds of the suite as a range. */
function range ({ start, end }) {
  const bounds = {}
  if (start !== null) bounds.gte = decoded(start)
  if (end !== null) bounds.lt = decoded(end)
  return bounds
}

const BYTES = { keyEncoding: 'buffer', valueEncoding: 'buffer' }

const HOUR = 3_600_000

class Session {
  path = folder()
  began = Date.now()

  async open () {
    const lockTimeout = suite.lock_timeout / 1000
    this.db = new WindrowLevel(this.path, { ...BYTES, mergeOperators: suite.merge_operators, lockTimeout })
    await this.db.open()
    const keyspace = (name) => this.db.keyspace(name, BYTES)
    this.keyspaces = { main: keyspace('main'), lists: keyspace('lists') }
    await Promise.all(Object.values(this.keyspaces).map((keyspace) => keyspace.open()))
    this.snapshots = new Map()
    this.transactions = new Map()
    this.savepoints = new Map()
    this.consumers = new Map()
    // The numbers of the changes that each consumer has read last.
    this.read = new Map()
  }

  keyspace (step) {
    return this.keyspaces[step.keyspace]
  }

  /** The options of the calls of a step. */
  options (step) {
    const options = { transaction: this.transactions.get(step.transaction), snapshot: this.snapshots.get(step.snapshot) }
    if (step.ttl !== undefined) options.ttl = step.ttl / 1000
    return options
  }

  /** The time to live of what expires then, in milliseconds. It has whole hours, and no history takes as long. */
  timeToLive (expiry) {
    return Math.round((expiry - this.began) / HOUR) * HOUR
  }

  /** A write of a change as the suite has it. */
  changed (write) {
    const changed = { keyspace: write.keyspace }
    if (write.type === 'clear') return { do: 'delete_range', ...changed, start: write.gte, end: write.lt }
    changed.key = write.key
    if (write.type === 'del') return { do: 'delete', ...changed }
    if (write.type === 'merge') return { do: 'merge', ...changed, operand: write.value }
    changed.value = write.value
    if (write.expiresAt !== undefined) changed.ttl = this.timeToLive(write.expiresAt)
    return { do: write.type, ...changed }
  }

  steps = {
    put: (step) => this.keyspace(step).put(decoded(step.key), decoded(step.value), this.options(step)),
    delete: (step) => this.keyspace(step).del(decoded(step.key), this.options(step)),
    merge: (step) => this.keyspace(step).merge(decoded(step.key), decoded(step.operand), this.options(step)),
    delete_range: (step) => this.keyspace(step).clear({ ...range(step), ...this.options(step) }),

    batch: async ({ writes }) => {
      const batch = this.db.batch()
      for (const write of writes) {
        const key = decoded(write.key)
        const place = { sublevel: this.keyspace(write) }
        if (write.do === 'put') batch.put(key, decoded(write.value), { ...this.options(write), ...place })
        else if (write.do === 'delete') batch.del(key, place)
        else if (write.do === 'merge') batch.merge(key, decoded(write.operand), place)
        else batch.clearRange({ ...range(write), ...place })
      }
      await batch.write()
    },

    put_if_absent: async (step) => {
      if (step.done !== false) await this.steps.put(step)
    },

    compare_and_swap: async (step) => {
      if (step.done === false || (step.expected === null && step.value === null)) return
      await (step.value === null ? this.steps.delete(step) : this.steps.put(step))
    },

    get: async (step) => {
      const options = { ...this.options(step), forUpdate: step.for_update }
      const value = await this.keyspace(step).get(decoded(step.key), options)
      assert.deepStrictEqual(value, decoded(step.value))
    },

    multi_get: async (step) => {
      const values = await this.keyspace(step).getMany(step.keys.map(decoded), this.options(step))
      assert.deepStrictEqual(values, step.values.map(decoded))
    },

    expires_at: async (step) => {
      const expiry = await this.keyspace(step).expiresAt(decoded(step.key))
      const ttl = expiry && this.timeToLive(expiry)
      assert.deepStrictEqual(ttl, step.exists ? step.ttl : undefined)
    },

    scan: async (step) => {
      const options = { ...range(step), reverse: step.reverse, ...this.options(step) }
      const entries = await this.keyspace(step).iterator(options).all()
      assert.deepStrictEqual(entries, step.entries.map((entry) => entry.map(decoded)))
    },

    neighbors: async (step) => {
      const key = decoded(step.key)
      const options = this.options(step)
      const [before] = await this.keyspace(step).keys({ lt: key, reverse: true, limit: 1, ...options }).all()
      const [after] = await this.keyspace(step).keys({ gte: key, limit: 1, ...options }).all()
      assert.deepStrictEqual([before, after], [decoded(step.before), decoded(step.after)])
      const iterator = this.keyspace(step).keys(options)
      iterator.seek(key)
      assert.deepStrictEqual(await iterator.next(), after)
      await iterator.close()
    },

    snapshot: async (step) => { this.snapshots.set(step.snapshot, this.db.snapshot()) },
    release: (step) => this.snapshots.get(step.snapshot).close(),
    flush: () => this.db.flush(),
    compact: (step) => this.keyspace(step).compactRange(Buffer.of(0), Buffer.alloc(10, 0xff)),
    close: () => this.db.close(),
    reopen: async () => { await this.db.close(); await this.open() },
    open_again: () => new WindrowLevel(this.path).open(),

    begin: async (step) => {
      const options = step.isolation === 'locking' ? { locking: true } : { isolation: step.isolation }
      this.transactions.set(step.transaction, await this.db.transaction(options))
    },
    commit: (step) => this.transactions.get(step.transaction).commit(),
    roll_back: (step) => this.transactions.get(step.transaction).rollback(),
    savepoint: async (step) => {
      this.savepoints.set(step.savepoint, await this.transactions.get(step.transaction).savepoint())
    },
    roll_back_to: (step) => this.transactions.get(step.transaction).rollbackTo(this.savepoints.get(step.savepoint)),

    consumer: async ({ name }) => { this.consumers.set(name, await this.db.consumer(name)) },
    consumer_names: async (step) => {
      const consumers = await this.db.consumers()
      assert.deepStrictEqual(consumers.map(({ name }) => name), step.names)
    },
    changes: async (step) => {
      const changes = []
      const feed = this.consumers.get(step.name).changes()
      try {
        for await (const change of feed) changes.push(change)
      } finally {
        await feed.close()
      }
      this.read.set(step.name, changes.map(({ sequence }) => sequence))
      for (const { type, sequence, firstSequence, writes } of changes) {
        assert.deepStrictEqual([type, sequence + 1 - firstSequence], ['batch', writes.length])
      }
      const found = changes.map(({ writes }) => writes.map((write) => this.changed(write)))
      assert.deepStrictEqual(found, step.changes.map((writes) => writes.map(expectedWrite)))
    },
    acknowledge: async (step) => {
      const consumer = this.consumers.get(step.name)
      const sequence = this.read.get(step.name)[step.count - 1]
      await consumer.acknowledge(sequence)
      assert.strictEqual(await consumer.acknowledged(), sequence)
    },
    remove_consumer: ({ name }) => this.db.removeConsumer(name)
  }

  async run (step) {
    const call = async () => this.steps[step.do](step)
    if (step.error === undefined) await call()
    else await assert.rejects(call, withCode(code(step)))
  }
}

test('the suite has the histories that are left out', () => {
  const names = suite.histories.map(({ name }) => name)
  assert.deepStrictEqual(LEFT_OUT.filter((name) => !names.includes(name)), [])
})

for (const history of suite.histories) {
  if (LEFT_OUT.includes(history.name)) continue
  test(`the answers of ${history.name} are those of the suite`, async () => {
    const session = new Session()
    await session.open()
    for (const [number, step] of history.steps.entries()) {
      try {
        await session.run(step)
      } catch (error) {
        error.message = `step ${number}, ${JSON.stringify(step)}: ${error.message}`
        throw error
      }
    }
    await session.db.close()
  })
}
