'use strict'

const { AbstractLevel } = require('abstract-level')
const { ChainedBatch } = require('./chained-batch')
const { errorWith } = require('./errors')
const { Iterator } = require('./iterator')
const { packKeys, part, unpackValues } = require('./packed')
const { range } = require('./range')
const { Snapshot } = require('./snapshot')
const { kAttach, kCall, kNative } = require('./symbols')
const { Transaction } = require('./transaction')
const { Writes } = require('./writes')

// A read in this number goes to another thread, also if its answer is in memory. So the loop of Node turns even if nothing
// but reads is waited for.
const ANSWERED_IN_A_ROW = 128

const MANIFEST = {
  encodings: { buffer: true, utf8: true, view: true },
  has: true,
  getSync: true,
  explicitSnapshots: true,
  signals: { iterators: true }
}

const METHODS = { approximateSize: true, compactRange: true, merge: true, expiresAt: true }

/** The entries of a keyspace, as an abstract-level database: what a database and its other keyspaces have in common. */
class Entries extends AbstractLevel {
  // The addon's database, while it is open.
  #native = null
  // Its calls that are made most.
  #functions = null
  // How many reads have looked in memory first.
  #looks = 0

  constructor ({ additionalMethods, ...manifest }, options) {
    super({ ...MANIFEST, ...manifest, additionalMethods: { ...METHODS, ...additionalMethods } }, options)
  }

  // The promises of the addon are returned as they are: abstract-level waits for them.
  _get (key, options) {
    const format = options.valueEncoding
    const asBytes = format !== 'utf8'
    let value
    if (options.transaction != null) {
      value = Transaction.get(options.transaction, this.#native, key, options)
    } else if (options.snapshot != null) {
      value = this.#native.getAt(key, asBytes, Snapshot.native(options.snapshot))
    } else {
      // An answer that is in memory costs less than the way to another thread and back.
      if (++this.#looks % ANSWERED_IN_A_ROW !== 0) {
        const near = this.#functions.getNear(key, asBytes)
        if (near !== null) return format === 'view' ? view(near) : near
      }
      value = this.#functions.get(key, asBytes)
    }
    return format === 'view' ? value.then(view) : value
  }

  _getSync (key, options) {
    if (options.transaction != null) {
      throw errorWith('LEVEL_NOT_SUPPORTED', 'A transaction has no getSync()')
    }
    const format = options.valueEncoding
    const asBytes = format !== 'utf8'
    const value = options.snapshot == null
      ? this.#functions.getSync(key, asBytes)
      : this.#native.getSyncAt(key, asBytes, Snapshot.native(options.snapshot))
    return format === 'view' ? view(value) : value
  }

  async _getMany (keys, options) {
    const packed = packKeys(keys)
    const values = options.transaction != null
      ? await Transaction.getMany(options.transaction, this.#native, packed, options)
      : await this.#native.getMany(packed, Snapshot.native(options.snapshot))
    return unpackValues(values, options.valueEncoding)
  }

  async _has (key, options) {
    if (options.transaction != null) return (await this._hasMany([key], options))[0]
    return this.#native.has(key, Snapshot.native(options.snapshot))
  }

  async _hasMany (keys, options) {
    const packed = packKeys(keys)
    if (options.transaction != null) {
      const values = await Transaction.getMany(options.transaction, this.#native, packed, options)
      return unpackValues(values, 'buffer').map((value) => value !== undefined)
    }
    const found = await this.#native.hasMany(packed, Snapshot.native(options.snapshot))
    return Array.from(found, (byte) => byte === 1)
  }

  _put (key, value, options) {
    if (options.transaction == null && options.ttl == null) {
      return this.#functions.put(key, value, options.sync)
    }
    const writes = new Writes(this)
    writes.put(key, value, options)
    return this.#write(writes, options)
  }

  _del (key, options) {
    if (options.transaction == null) return this.#functions.del(key, options.sync)
    const writes = new Writes(this)
    writes.del(key, options)
    return this.#write(writes, options)
  }

  _batch (operations, options) {
    const writes = new Writes(this)
    for (const operation of operations) {
      if (operation.type === 'put') writes.put(operation.key, operation.value, operation)
      else writes.del(operation.key, operation)
    }
    return this.#write(writes, options)
  }

  _chainedBatch () {
    return new ChainedBatch(this, new Writes(this), (writes, options) => this.#write(writes, options))
  }

  _clear (options) {
    const keys = range(options)
    const limit = options.limit === -1 || options.limit > 0xffffffff ? undefined : options.limit
    if (options.transaction != null) {
      if (limit !== undefined || options.snapshot != null) {
        throw errorWith('LEVEL_NOT_SUPPORTED', 'A transaction has no clear() with a limit or a snapshot')
      }
      return Transaction.clear(options.transaction, this.#native, keys)
    }
    if (limit === undefined && options.snapshot == null) {
      return this.#native.clear(keys, options.sync)
    }
    const snapshot = Snapshot.native(options.snapshot)
    return this.#native.clearSome(keys, options.reverse, limit, snapshot, options.sync)
  }

  _iterator (options) {
    const { reverse, keys, values, transaction } = options
    const form = { reverse, keys, values }
    const native = transaction != null
      ? Transaction.iterator(transaction, this.#native, range(options), form)
      : this.#native.iterator(range(options), form, Snapshot.native(options.snapshot))
    return new Iterator(this, native, options)
  }

  _snapshot (options) {
    return new Snapshot(this.#native.snapshot(), options)
  }

  async approximateSize (start, end, options) {
    const { keyEncoding } = startEnd(arguments, options)
    return this[kCall]((native) => {
      const encoding = this.keyEncoding(keyEncoding)
      return native.approximateSize(encoding.encode(start), encoding.encode(end))
    })
  }

  async compactRange (start, end, options) {
    const { keyEncoding } = startEnd(arguments, options)
    return this[kCall]((native) => {
      const encoding = this.keyEncoding(keyEncoding)
      return native.compactRange(encoding.encode(start), encoding.encode(end))
    })
  }

  async merge (key, operand, options) {
    options ??= {}
    this._assertValidKey(key)
    this._assertValidValue(operand)
    const encodings = [this.keyEncoding(options.keyEncoding), this.valueEncoding(options.valueEncoding)]
    return this[kCall](() => {
      const writes = new Writes(this)
      writes.merge(encodings[0].encode(key), encodings[1].encode(operand), {})
      return this.#write(writes, options)
    })
  }

  async expiresAt (key, options) {
    const milliseconds = await this[kCall]((native) => {
      this._assertValidKey(key)
      return native.expiresAt(this.keyEncoding(options?.keyEncoding).encode(key))
    })
    return typeof milliseconds === 'number' ? new Date(milliseconds) : milliseconds
  }

  // The addon's database, for writes to several keyspaces and for transactions.
  get [kNative] () {
    return this.#native
  }

  /** Begins to use the addon's database; null ends it. */
  [kAttach] (native) {
    this.#native = native
    this.#functions = native?.functions() ?? null
  }

  #write (writes, options) {
    return options.transaction != null
      ? Transaction.write(options.transaction, writes)
      : this.#native.batch(writes.natives, writes.bytes, options.sync)
  }

  // Makes a call that abstract-level does not know, when the database is open.
  async [kCall] (call) {
    if (this.status === 'opening') return this.deferAsync(() => this[kCall](call))
    if (this.status !== 'open') {
      throw errorWith('LEVEL_DATABASE_NOT_OPEN', 'Database is not open')
    }
    return call(this.#native)
  }
}

/** The bytes of a value, if there is one, as a view. */
function view (value) {
  return value === undefined ? undefined : part(value, 0, value.byteLength, 'view')
}

function startEnd (given, options) {
  if (given.length < 2) {
    throw new TypeError("The arguments 'start' and 'end' are required")
  }
  return options ?? {}
}

module.exports = { Entries }
