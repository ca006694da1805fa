'use strict'

const { checkName } = require('./checks')
const { Entries } = require('./entries')
const { errorWith } = require('./errors')
const { keyspaceOptions } = require('./options')
const { kAttach, kNative } = require('./symbols')

/** A keyspace beside that of the database. It is open while its database is. */
class Keyspace extends Entries {
  #database
  #name

  constructor (database, name, options) {
    checkName(name)
    super({}, options)
    this.#database = database
    this.#name = name
  }

  get name () {
    return this.#name
  }

  get database () {
    return this.#database
  }

  async _open (options) {
    // As a sublevel, it does not open its database by itself.
    await this.#database.open({ passive: true })
    const native = this.#database[kNative]
    if (native === null) throw errorWith('LEVEL_DATABASE_NOT_OPEN', 'Database is not open')
    this[kAttach](await native.keyspace(this.#name, keyspaceOptions(options.keyspace)))
    this.#database.attachResource(this)
  }

  async _close () {
    this.#database.detachResource(this)
    this[kAttach](null)
  }
}

module.exports = { Keyspace }
