'use strict'

// The contract suite of all bindings: see bindings/contract/README.md.
//
// A keyspace is a sublevel. The package has no merges and no transactions: here a merge is a read and a put, and a
// transaction is a snapshot, and a batch of what it has written. So the answers of all reads are compared, but the suite
// says which commits fail. Left out are the steps that are wrong only in Windrow's own interfaces: the empty key is one
// of abstract-level, a merge without an operator, and a long key that a transaction refuses before its commit.

const assert = require('node:assert')
const path = require('node:path')
const { test } = require('node:test')
const { WindrowLevel } = require('windrow')
const { folder, withCode } = require('./common')

const suite = require(path.join(__dirname, '../../contract/suite.json'))

const CODES = {
  Closed: 'LEVEL_DATABASE_NOT_OPEN',
  InvalidArgument: 'LEVEL_INVALID_ARGUMENT',
  Locked: 'LEVEL_LOCKED'
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

function isIn ({ gte, lt }, key) {
  return (gte === undefined || key.compare(gte) >= 0) && (lt === undefined || key.compare(lt) < 0)
}

function isLeftOut (step) {
  if (step.error !== 'InvalidArgument') return false
  const writes = step.writes ?? [step]
  return step.do === 'merge' || step.transaction !== undefined || writes.some(({ key }) => key === '')
}

const BYTES = { keyEncoding: 'buffer', valueEncoding: 'buffer' }

class Session {
  constructor (hasLongKeys) {
    this.hasLongKeys = hasLongKeys
    this.path = folder()
  }

  async open () {
    this.db = new WindrowLevel(this.path, BYTES)
    await this.db.open()
    const keyspace = (name) => this.hasLongKeys ? this.db : this.db.sublevel(name, BYTES)
    this.keyspaces = { main: keyspace('main'), lists: keyspace('lists') }
    this.snapshots = new Map()
    this.transactions = new Map()
    this.savepoints = new Map()
  }

  keyspace (step) {
    return this.keyspaces[step.keyspace]
  }

  /** The entries of a keyspace, by keys in hexadecimal digits: in a snapshot, with these writes over it. */
  async state (keyspace, snapshot, writes) {
    const entries = new Map()
    for (const [key, value] of await this.keyspaces[keyspace].iterator({ snapshot }).all()) {
      entries.set(key.toString('hex'), value)
    }
    for (const write of writes.filter((write) => write.keyspace === keyspace)) {
      const key = decoded(write.key)?.toString('hex')
      if (write.do === 'put') {
        entries.set(key, decoded(write.value))
      } else if (write.do === 'delete') {
        entries.delete(key)
      } else if (write.do === 'merge') {
        const operands = [entries.get(key), decoded(write.operand)].filter((bytes) => bytes !== undefined)
        entries.set(key, operands.length === 1 ? operands[0] : Buffer.concat([operands[0], Buffer.from('|'), operands[1]]))
      } else {
        for (const key of [...entries.keys()]) {
          if (isIn(range(write), Buffer.from(key, 'hex'))) entries.delete(key)
        }
      }
    }
    return entries
  }

  /** Makes writes as one batch. */
  async write (writes) {
    const operations = []
    for (const [name, sublevel] of Object.entries(this.keyspaces)) {
      const before = await this.state(name, undefined, [])
      const after = await this.state(name, undefined, writes)
      for (const key of new Set([...before.keys(), ...after.keys()])) {
        const value = after.get(key)
        const bytes = Buffer.from(key, 'hex')
        if (value === undefined) operations.push({ type: 'del', key: bytes, sublevel })
        else if (value !== before.get(key)) operations.push({ type: 'put', key: bytes, value, sublevel })
      }
    }
    await this.db.batch(operations)
  }

  steps = {
    put: (step) => this.keyspace(step).put(decoded(step.key), decoded(step.value)),
    delete: (step) => this.keyspace(step).del(decoded(step.key)),
    merge: (step) => this.write([step]),
    delete_range: (step) => this.keyspace(step).clear(range(step)),

    batch: async ({ writes }) => {
      if (writes.some((write) => write.do === 'merge' || write.do === 'delete_range')) return this.write(writes)
      await this.db.batch(writes.map((write) => ({
        type: write.do === 'put' ? 'put' : 'del',
        key: decoded(write.key),
        value: decoded(write.value),
        sublevel: this.hasLongKeys ? undefined : this.keyspace(write)
      })))
    },

    get: async (step) => {
      const snapshot = this.snapshots.get(step.snapshot)
      const value = await this.keyspace(step).get(decoded(step.key), { snapshot })
      assert.deepStrictEqual(value, decoded(step.value))
    },

    scan: async (step) => {
      const snapshot = this.snapshots.get(step.snapshot)
      const options = { ...range(step), reverse: step.reverse, snapshot }
      const entries = await this.keyspace(step).iterator(options).all()
      assert.deepStrictEqual(entries, step.entries.map((entry) => entry.map(decoded)))
    },

    neighbors: async (step) => {
      const key = decoded(step.key)
      const snapshot = this.snapshots.get(step.snapshot)
      const [before] = await this.keyspace(step).keys({ lt: key, reverse: true, limit: 1, snapshot }).all()
      const [after] = await this.keyspace(step).keys({ gte: key, limit: 1, snapshot }).all()
      assert.deepStrictEqual([before, after], [decoded(step.before), decoded(step.after)])
      const iterator = this.keyspace(step).keys({ snapshot })
      iterator.seek(key)
      assert.deepStrictEqual(await iterator.next(), after)
      await iterator.close()
    },

    snapshot: async (step) => { this.snapshots.set(step.snapshot, this.db.snapshot()) },
    release: (step) => this.snapshots.get(step.snapshot).close(),
    flush: () => this.db.flush(),
    compact: (step) => this.db.compactRange(Buffer.of(0), Buffer.alloc(10, 0xff)),
    close: () => this.db.close(),
    reopen: async () => { await this.db.close(); await this.open() },
    open_again: () => new WindrowLevel(this.path).open(),

    begin: async (step) => {
      this.transactions.set(step.transaction, { snapshot: this.db.snapshot(), writes: [] })
    },
    commit: (step) => this.write(this.transactions.get(step.transaction).writes),
    roll_back: (step) => this.transactions.get(step.transaction).snapshot.close(),
    savepoint: async (step) => {
      this.savepoints.set(step.savepoint, this.transactions.get(step.transaction).writes.length)
    },
    roll_back_to: async (step) => {
      this.transactions.get(step.transaction).writes.length = this.savepoints.get(step.savepoint)
    }
  }

  transactionSteps = {
    get: async (step, { snapshot, writes }) => {
      const state = await this.state(step.keyspace, snapshot, writes)
      assert.deepStrictEqual(state.get(step.key), decoded(step.value))
    },

    scan: async (step, { snapshot, writes }) => {
      const state = await this.state(step.keyspace, snapshot, writes)
      const entries = [...state].map(([key, value]) => [Buffer.from(key, 'hex'), value])
      const found = entries.filter(([key]) => isIn(range(step), key)).sort(([a], [b]) => a.compare(b))
      if (step.reverse) found.reverse()
      assert.deepStrictEqual(found, step.entries.map((entry) => entry.map(decoded)))
    }
  }

  async run (step) {
    if (step.error === 'Conflict' || isLeftOut(step)) return
    const transaction = this.transactions.get(step.transaction)
    if (transaction !== undefined && ['put', 'delete', 'merge', 'delete_range'].includes(step.do)) {
      transaction.writes.push(step)
      return
    }
    const inTransaction = transaction !== undefined && this.transactionSteps[step.do]
    const call = async () => inTransaction ? inTransaction(step, transaction) : this.steps[step.do](step)
    if (step.error === undefined) await call()
    else await assert.rejects(call, withCode(CODES[step.error]))
  }
}

for (const history of suite.histories) {
  test(`the answers of ${history.name} are those of the suite`, async () => {
    const session = new Session(history.name === 'limits and errors')
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
