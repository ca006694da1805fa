'use strict'

const { AbstractChainedBatch } = require('abstract-level')
const { PackedWriter } = require('./packed')

class ChainedBatch extends AbstractChainedBatch {
  #writes = new PackedWriter()
  #write

  /** `write` takes packed writes and options. */
  constructor (db, write) {
    super(db)
    this.#write = write
  }

  _put (key, value) {
    this.#writes.addPut(key, value)
  }

  _del (key) {
    this.#writes.addDel(key)
  }

  _clear () {
    this.#writes.clear()
  }

  async _write (options) {
    return this.#write(this.#writes.bytes, options)
  }

  async _close () {
    this.#writes = null
  }
}

module.exports = { ChainedBatch }
