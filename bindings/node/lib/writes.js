'use strict'

const { milliseconds } = require('./checks')
const { PackedWriter } = require('./packed')
const { range } = require('./range')
const { kNative } = require('./symbols')

/** Writes to a keyspace, and perhaps to others of the database, which become one. */
class Writes {
  #writer = new PackedWriter()
  // The keyspaces by their numbers in the packed writes.
  #keyspaces
  #present = 0

  constructor (keyspace) {
    this.#keyspaces = [keyspace]
  }

  /** A write of an encoded key to a sublevel that abstract-level has not resolved is one of another keyspace. */
  put (key, value, { sublevel, keyEncoding, ttl }) {
    const full = this.#in(sublevel, key, keyEncoding)
    if (ttl == null) this.#writer.addPut(full, value)
    else this.#writer.addPutFor(full, value, milliseconds(ttl, 'ttl'))
  }

  del (key, { sublevel, keyEncoding }) {
    this.#writer.addDel(this.#in(sublevel, key, keyEncoding))
  }

  merge (key, operand, { sublevel, keyEncoding }) {
    this.#writer.addMerge(this.#in(sublevel, key, keyEncoding), operand)
  }

  clearRange (bounds, { sublevel, keyEncoding }) {
    if (sublevel != null && sublevel[kNative] === undefined) {
      throw new TypeError("The option 'sublevel' must be a keyspace: see clear() for sublevels")
    }
    this.#in(sublevel, '', keyEncoding)
    this.#writer.addDelRange(range(bounds))
  }

  clear () {
    this.#writer.clear()
    this.#keyspaces.length = 1
    this.#present = 0
  }

  get bytes () {
    return this.#writer.bytes
  }

  /** The addon's databases, by their numbers. */
  get natives () {
    return this.#keyspaces.map((keyspace) => keyspace[kNative])
  }

  // Goes to the keyspace of a sublevel, or to the own one. Returns the key there.
  #in (sublevel, key, keyEncoding) {
    let keyspace = this.#keyspaces[0]
    if (sublevel != null && sublevel !== keyspace) {
      keyspace = sublevel[kNative] === undefined ? sublevel.db : sublevel
      if (keyspace?.[kNative] == null) {
        throw new TypeError("The option 'sublevel' must be an open keyspace or sublevel of the database")
      }
      key = sublevel.prefixKey(key, keyEncoding, false)
    }
    let number = this.#keyspaces.indexOf(keyspace)
    if (number < 0) number = this.#keyspaces.push(keyspace) - 1
    if (number !== this.#present) {
      this.#writer.addIn(number)
      this.#present = number
    }
    return key
  }
}

module.exports = { Writes }
