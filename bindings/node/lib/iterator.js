'use strict'

const { AbstractIterator } = require('abstract-level')
const { errorWith } = require('./errors')
const { part } = require('./packed')
const { Transaction } = require('./transaction')

// How many entries next() reads at once, but for the first after the begin or a seek: that is often the only one.
const AHEAD_MAX = 1000

// An iterator reads no more at once after this many bytes of keys and values.
const HIGH_WATER_MARK_BYTES = 64 * 1024

const NONE = Buffer.alloc(0)

class Iterator extends AbstractIterator {
  #native
  #keyFormat
  #valueFormat
  #highWaterMarkBytes
  #signal
  #transaction
  // How many entries next() reads at once: in a transaction one, so that the commit depends on no more than was seen.
  #aheadMax

  // Entries that were read ahead: the buffer that has them, where the next one is, and how many there are.
  #packed = NONE
  #offset = 0
  #cached = 0
  #isFirst = true
  #hasEnded = false

  constructor (db, native, options) {
    super(db, options)
    this.#native = native
    this.#keyFormat = options.keys ? options.keyEncoding : null
    this.#valueFormat = options.values ? options.valueEncoding : null
    // As a number of 32 bits, so infinity is none.
    this.#highWaterMarkBytes = (options.highWaterMarkBytes ?? HIGH_WATER_MARK_BYTES) >>> 0
    this.#transaction = options.transaction ?? null
    this.#aheadMax = this.#transaction === null ? AHEAD_MAX : 1
    this.#signal = options.signal ?? null
    this.#signal?.addEventListener('abort', this.#abort, { once: true })
  }

  /** How many entries were read ahead. */
  get cached () {
    return this.#cached
  }

  // Both give a promise only if they have to wait.
  _next () {
    if (this.#cached > 0) return this.#take()
    if (this.#hasEnded) return undefined
    return this.#readOne()
  }

  _nextv (size) {
    if (this.#cached > 0) return this.#takeMany(size)
    if (this.#hasEnded) return []
    return this.#readMany(size)
  }

  _seek (target) {
    this.#forget()
    this.#isFirst = true
    this.#hasEnded = false
    this.#native.seek(target)
  }

  async _close () {
    this.#forget()
    this.#signal?.removeEventListener('abort', this.#abort)
    this.#native.close()
  }

  async #readOne () {
    await this.#read(this.#isFirst ? 1 : Math.min(this.#aheadMax, this.limit - this.count))
    return this.#cached > 0 ? this.#take() : undefined
  }

  async #readMany (size) {
    await this.#read(size)
    return this.#takeMany(size)
  }

  // Reads ahead. Afterwards there are entries, or the iterator is at its end.
  async #read (count) {
    this.#isFirst = false
    const read = () => this.#native.read(Math.min(count, 0xffffffff), this.#highWaterMarkBytes)
    const packed = await (this.#transaction === null ? read() : Transaction.run(this.#transaction, read))
    if (this.#signal?.aborted) throw errorWith('LEVEL_ABORTED', 'Operation has been aborted', 'AbortError')
    const head = packed.readUInt32LE(0)
    this.#packed = packed
    this.#offset = 4
    this.#cached = head >>> 1
    this.#hasEnded = (head & 1) === 1
  }

  #take () {
    const packed = this.#packed
    const keyLength = packed.readUInt32LE(this.#offset)
    const valueLength = packed.readUInt32LE(this.#offset + 4)
    const key = this.#offset + 8
    const value = key + keyLength
    const end = value + valueLength
    this.#offset = end
    if (--this.#cached === 0) this.#packed = NONE
    return [
      this.#keyFormat === null ? undefined : part(packed, key, value, this.#keyFormat),
      this.#valueFormat === null ? undefined : part(packed, value, end, this.#valueFormat)
    ]
  }

  #takeMany (size) {
    const entries = new Array(Math.min(size, this.#cached))
    for (let i = 0; i < entries.length; i++) entries[i] = this.#take()
    return entries
  }

  #forget () {
    this.#packed = NONE
    this.#cached = 0
  }

  #abort = () => this.#native.abort()
}

module.exports = { Iterator }
