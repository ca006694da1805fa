'use strict'

// The contract suite of all bindings: see bindings/contract/README.md.
//
// The keyspaces of the suite are beside that of the database. Snapshots and transactions are options of calls.

const assert = require('node:assert')
const path = require('node:path')
const { test } = require('node:test')
const { WindrowLevel } = require('windrow')
const { folder, withCode } = require('./common')

const suite = require(path.join(__dirname, '../../contract/suite.json'))

const CODES = {
  Closed: 'LEVEL_DATABASE_NOT_OPEN',
  Conflict: 'LEVEL_CONFLICT',
  InvalidArgument: 'LEVEL_INVALID_ARGUMENT',
  Locked: 'LEVEL_LOCKED'
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

/** The bounds of the suite as a range. */
function range ({ start, end }) {
  const bounds = {}
  if (start !== null) bounds.gte = decoded(start)
  if (end !== null) bounds.lt = decoded(end)
  return bounds
}

const BYTES = { keyEncoding: 'buffer', valueEncoding: 'buffer' }

class Session {
  path = folder()

  async open () {
    this.db = new WindrowLevel(this.path, { ...BYTES, mergeOperators: suite.merge_operators })
    await this.db.open()
    const keyspace = (name) => this.db.keyspace(name, BYTES)
    this.keyspaces = { main: keyspace('main'), lists: keyspace('lists') }
    await Promise.all(Object.values(this.keyspaces).map((keyspace) => keyspace.open()))
    this.snapshots = new Map()
    this.transactions = new Map()
    this.savepoints = new Map()
  }

  keyspace (step) {
    return this.keyspaces[step.keyspace]
  }

  /** The options of the calls of a step. */
  options (step) {
    return { transaction: this.transactions.get(step.transaction), snapshot: this.snapshots.get(step.snapshot) }
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
        if (write.do === 'put') batch.put(key, decoded(write.value), place)
        else if (write.do === 'delete') batch.del(key, place)
        else if (write.do === 'merge') batch.merge(key, decoded(write.operand), place)
        else batch.clearRange({ ...range(write), ...place })
      }
      await batch.write()
    },

    get: async (step) => {
      const value = await this.keyspace(step).get(decoded(step.key), this.options(step))
      assert.deepStrictEqual(value, decoded(step.value))
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
      this.transactions.set(step.transaction, await this.db.transaction({ isolation: step.isolation }))
    },
    commit: (step) => this.transactions.get(step.transaction).commit(),
    roll_back: (step) => this.transactions.get(step.transaction).rollback(),
    savepoint: async (step) => {
      this.savepoints.set(step.savepoint, await this.transactions.get(step.transaction).savepoint())
    },
    roll_back_to: (step) => this.transactions.get(step.transaction).rollbackTo(this.savepoints.get(step.savepoint))
  }

  async run (step) {
    const call = async () => this.steps[step.do](step)
    if (step.error === undefined) await call()
    else await assert.rejects(call, withCode(code(step)))
  }
}

for (const history of suite.histories) {
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
