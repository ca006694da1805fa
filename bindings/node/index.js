'use strict'

const { AbstractLevel } = require('abstract-level')
const fs = require('fs/promises')
const backups = require('./lib/backups')
const native = require('./lib/native')
const { Changes, Consumer, checkName, checkSequence } = require('./lib/changes')
const { ChainedBatch } = require('./lib/chained-batch')
const { errorWith } = require('./lib/errors')
const { Iterator } = require('./lib/iterator')
const { openOptions } = require('./lib/options')
const { PackedWriter, packKeys, part, unpackValues } = require('./lib/packed')
const { range } = require('./lib/range')
const { secondaries } = require('./lib/secondary')
const { Snapshot } = require('./lib/snapshot')

class WindrowLevel extends AbstractLevel {
  #location
  // The addon's database, while it is open.
  #native = null

  constructor (location, options) {
    checkLocation(location)
    super({
      encodings: { buffer: true, utf8: true, view: true },
      has: true,
      getSync: true,
      createIfMissing: true,
      errorIfExists: true,
      explicitSnapshots: true,
      signals: { iterators: true },
      additionalMethods: {
        approximateSize: true,
        compactRange: true,
        persist: true,
        flush: true,
        checkpoint: true,
        backup: true,
        changes: true,
        consumer: true,
        consumers: true,
        removeConsumer: true,
        verify: true,
        stats: true
      }
    }, options)
    this.#location = location
  }

  get location () {
    return this.#location
  }

  async _open (options) {
    this.#native = await this._openNative(options)
  }

  async _openNative (options) {
    if (options.createIfMissing) await fs.mkdir(this.#location, { recursive: true })
    return native.open(this.#location, openOptions(options))
  }

  async _close () {
    await this.#native.close()
    // What a closed database still has in memory is free from now on.
    this.#native = null
  }

  // The promises of the addon are returned as they are: abstract-level waits for them.
  _get (key, options) {
    const format = options.valueEncoding
    const value = this.#native.get(key, format !== 'utf8', Snapshot.native(options.snapshot))
    return format === 'view' ? value.then(view) : value
  }

  _getSync (key, options) {
    const format = options.valueEncoding
    const value = this.#native.getSync(key, format !== 'utf8', Snapshot.native(options.snapshot))
    return format === 'view' ? view(value) : value
  }

  async _getMany (keys, options) {
    const packed = await this.#native.getMany(packKeys(keys), Snapshot.native(options.snapshot))
    return unpackValues(packed, options.valueEncoding)
  }

  _has (key, options) {
    return this.#native.has(key, Snapshot.native(options.snapshot))
  }

  async _hasMany (keys, options) {
    const found = await this.#native.hasMany(packKeys(keys), Snapshot.native(options.snapshot))
    return Array.from(found, (byte) => byte === 1)
  }

  _put (key, value, options) {
    return this.#native.put(key, value, options.sync)
  }

  _del (key, options) {
    return this.#native.del(key, options.sync)
  }

  _batch (operations, options) {
    const writes = new PackedWriter()
    for (const operation of operations) {
      if (operation.type === 'put') writes.addPut(operation.key, operation.value)
      else writes.addDel(operation.key)
    }
    return this.#native.batch(writes.bytes, options.sync)
  }

  _chainedBatch () {
    return new ChainedBatch(this, (writes, options) => this.#native.batch(writes, options.sync))
  }

  _clear (options) {
    const keys = range(options)
    if (options.limit === -1 && options.snapshot == null) {
      return this.#native.clear(keys, options.sync)
    }
    const limit = options.limit === -1 || options.limit > 0xffffffff ? undefined : options.limit
    const snapshot = Snapshot.native(options.snapshot)
    return this.#native.clearSome(keys, options.reverse, limit, snapshot, options.sync)
  }

  _iterator (options) {
    const { reverse, keys, values } = options
    const snapshot = Snapshot.native(options.snapshot)
    const iterator = this.#native.iterator(range(options), { reverse, keys, values }, snapshot)
    return new Iterator(this, iterator, options)
  }

  _snapshot (options) {
    return new Snapshot(this.#native.snapshot(), options)
  }

  async approximateSize (start, end, options) {
    const { keyEncoding } = startEnd(arguments, options)
    return this.#call(() => {
      const encoding = this.keyEncoding(keyEncoding)
      return this.#native.approximateSize(encoding.encode(start), encoding.encode(end))
    })
  }

  async compactRange (start, end, options) {
    const { keyEncoding } = startEnd(arguments, options)
    return this.#call(() => {
      const encoding = this.keyEncoding(keyEncoding)
      return this.#native.compactRange(encoding.encode(start), encoding.encode(end))
    })
  }

  async persist () {
    return this.#call(() => this.#native.persist())
  }

  async flush () {
    return this.#call(() => this.#native.flush())
  }

  async checkpoint (location) {
    checkLocation(location)
    return this.#call(() => this.#native.checkpoint(location))
  }

  async backup (to) {
    return backups.run(to, (native) => this.#call(() => this.#native.backup(native)))
  }

  changes (from, options) {
    checkSequence(from, 'from')
    return new Changes(this, () => this.#call(() => this.#native.changes(from)), options)
  }

  async consumer (name) {
    checkName(name)
    const consumer = await this.#call(() => this.#native.consumer(name))
    return new Consumer(this, name, consumer, (call) => this.#call(call))
  }

  async consumers () {
    return this.#call(() => this.#native.consumers())
  }

  async removeConsumer (name) {
    checkName(name)
    return this.#call(() => this.#native.removeConsumer(name))
  }

  async verify () {
    return this.#call(() => this.#native.verify())
  }

  async stats () {
    return JSON.parse(await this.#call(() => this.#native.stats()))
  }

  static async destroy (location) {
    checkLocation(location)
    return native.destroy(location)
  }

  // Makes a call that abstract-level does not know, when the database is open.
  async #call (call) {
    if (this.status === 'opening') return this.deferAsync(() => this.#call(call))
    if (this.status !== 'open') {
      throw errorWith('LEVEL_DATABASE_NOT_OPEN', 'Database is not open')
    }
    return call()
  }
}

function checkLocation (location) {
  if (typeof location !== 'string' || location === '') {
    throw new TypeError("The first argument 'location' must be a non-empty string")
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

// A state of a secondary: a database of the addon that is open already. It is open until its first close.
class State extends WindrowLevel {
  #state

  constructor (location, options, state) {
    super(location, options)
    this.#state = state
  }

  async _openNative () {
    const state = this.#state
    this.#state = null
    if (state === null) throw errorWith('LEVEL_NOT_SUPPORTED', 'A state of a secondary is opened once')
    return state
  }
}

exports.WindrowLevel = WindrowLevel
exports.Secondary = secondaries((location, options, state) => new State(location, options, state))
exports.Backups = backups.Backups
