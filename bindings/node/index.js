'use strict'

const fs = require('fs/promises')
const backups = require('./lib/backups')
const native = require('./lib/native')
const { Entries } = require('./lib/entries')
const { Keyspace, checkName } = require('./lib/keyspace')
const { openOptions } = require('./lib/options')
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
    if (options.createIfMissing) await fs.mkdir(this.#location, { recursive: true })
    this[kAttach](await native.open(this.#location, openOptions(options)))
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
    return backups.run(to, (to) => this[kCall]((native) => native.backup(to)))
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

function checkLocation (location) {
  if (typeof location !== 'string' || location === '') {
    throw new TypeError("The first argument 'location' must be a non-empty string")
  }
}

exports.WindrowLevel = WindrowLevel
exports.Transaction = Transaction
exports.Backups = backups.Backups
