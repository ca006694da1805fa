'use strict'

const fs = require('fs/promises')
const backups = require('./lib/backups')
const native = require('./lib/native')
const { ChainedBatch } = require('./lib/chained-batch')
const { Changes, Consumer } = require('./lib/changes')
const { checkLocation, checkName, checkWhole } = require('./lib/checks')
const { Entries } = require('./lib/entries')
const { errorWith } = require('./lib/errors')
const { Keyspace } = require('./lib/keyspace')
const { openOptions } = require('./lib/options')
const { secondaries } = require('./lib/secondary')
const { Snapshot } = require('./lib/snapshot')
const { kAttach, kCall, kNative } = require('./lib/symbols')
const { Transaction, transact } = require('./lib/transaction')

class WindrowLevel extends Entries {
  #location

  constructor (location, options) {
    checkLocation(location)
    super({
      createIfMissing: true,
      errorIfExists: true,
      additionalMethods: {
        keyspace: true,
        keyspaceNames: true,
        dropKeyspace: true,
        transaction: true,
        transact: true,
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
    this[kAttach](await this._openNative(options))
  }

  async _openNative (options) {
    if (options.createIfMissing) await fs.mkdir(this.#location, { recursive: true })
    return native.open(this.#location, openOptions(options))
  }

  async _close () {
    await this[kNative].close()
    // What a closed database still has in memory is free from now on.
    this[kAttach](null)
  }

  keyspace (name, options) {
    return new Keyspace(this, name, options)
  }

  async keyspaceNames () {
    return this[kCall]((native) => native.keyspaceNames())
  }

  async dropKeyspace (name) {
    checkName(name)
    return this[kCall]((native) => native.dropKeyspace(name))
  }

  async transaction (options) {
    return this[kCall]((native) => Transaction.begin(this, native, options))
  }

  async transact (work, options) {
    return transact(this, work, options)
  }

  async persist () {
    return this[kCall]((native) => native.persist())
  }

  async flush () {
    return this[kCall]((native) => native.flush())
  }

  async checkpoint (location) {
    checkLocation(location)
    return this[kCall]((native) => native.checkpoint(location))
  }

  async backup (to) {
    return this[kCall]((native) => {
      const made = backups.run(to, (to) => native.backup(to))
      // It may wait for other calls of the backups, and a close of the database waits for it.
      const turn = { close: () => made.then(() => {}, () => {}) }
      this.attachResource(turn)
      return made.finally(() => this.detachResource(turn))
    })
  }

  changes (from, options) {
    checkWhole(from, 'from')
    return new Changes(this, () => this[kCall]((native) => native.changes(from)), options)
  }

  async consumer (name) {
    checkName(name)
    return new Consumer(this, name, await this[kCall]((native) => native.consumer(name)))
  }

  async consumers () {
    return this[kCall]((native) => native.consumers())
  }

  async removeConsumer (name) {
    checkName(name)
    return this[kCall]((native) => native.removeConsumer(name))
  }

  async verify () {
    return this[kCall]((native) => native.verify())
  }

  async stats () {
    return JSON.parse(await this[kCall]((native) => native.stats()))
  }

  static async destroy (location) {
    checkLocation(location)
    return native.destroy(location)
  }
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
exports.Transaction = Transaction
exports.Secondary = secondaries((location, options, state) => new State(location, options, state))
exports.Backups = backups.Backups
exports.Changes = Changes
exports.ChainedBatch = ChainedBatch
exports.Consumer = Consumer
exports.Keyspace = Keyspace
exports.Snapshot = Snapshot
