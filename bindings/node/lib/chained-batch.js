'use strict'

const { AbstractChainedBatch } = require('abstract-level')
const { errorWith } = require('./errors')

class ChainedBatch extends AbstractChainedBatch {
  #writes
  #write
  // How many operations abstract-level does not know.
  #others = 0
  #isWriting = false

  /** `write` takes the writes and options. */
  constructor (db, writes, write) {
    super(db)
    this.#writes = writes
    this.#write = write
  }

  get length () {
    return super.length + this.#others
  }

  _put (key, value, options) {
    this.#held().put(key, value, options)
  }

  _del (key, options) {
    this.#held().del(key, options)
  }

  // abstract-level 3.1 removes the key from the database of the batch if the sublevel is of another one.
  del (key, options) {
    const sublevel = options?.sublevel ?? this.db
    if (sublevel === this.db || sublevel.db === this.db) return super.del(key, options)
    const { level, keyEncoding } = this.#level(options)
    level._assertValidKey(key)
    this.#writes.del(keyEncoding.encode(key), { sublevel: level, keyEncoding: keyEncoding.format })
    this.#others++
    return this
  }

  merge (key, operand, options) {
    const { level, keyEncoding } = this.#level(options)
    const valueEncoding = level.valueEncoding(options?.valueEncoding)
    level._assertValidKey(key)
    level._assertValidValue(operand)
    const place = { sublevel: level, keyEncoding: keyEncoding.format }
    this.#writes.merge(keyEncoding.encode(key), valueEncoding.encode(operand), place)
    this.#others++
    return this
  }

  clearRange (options) {
    const { level, keyEncoding } = this.#level(options)
    const bounds = {}
    for (const name of ['gt', 'gte', 'lt', 'lte']) {
      if (options?.[name] !== undefined) bounds[name] = keyEncoding.encode(options[name])
    }
    this.#writes.clearRange(bounds, { sublevel: level, keyEncoding: keyEncoding.format })
    this.#others++
    return this
  }

  _clear () {
    this.#held().clear()
    this.#others = 0
  }

  async write (options) {
    this.#check()
    this.#isWriting = true
    // Without operations that it knows, abstract-level writes nothing.
    if (super.length > 0 || this.#others === 0) return super.write(options)
    // It does not know of this write either.
    const writes = this.#writes
    this.#writes = null
    try {
      await this.#write(writes, options ?? {})
    } finally {
      await this.close()
    }
  }

  async _write (options) {
    return this.#write(this.#writes, options)
  }

  // The writes, until abstract-level knows that they are written.
  #held () {
    if (this.#writes === null) throw notOpen()
    return this.#writes
  }

  async _close () {
    this.#writes = null
    this.#others = 0
  }

  #check () {
    if (this.#writes === null || this.#isWriting) throw notOpen()
  }

  // Where a write goes that abstract-level does not know.
  #level (options) {
    this.#check()
    const level = options?.sublevel ?? this.db
    return { level, keyEncoding: level.keyEncoding(options?.keyEncoding) }
  }
}

function notOpen () {
  return errorWith('LEVEL_BATCH_NOT_OPEN', 'Batch is not open')
}

module.exports = { ChainedBatch }
