'use strict'

// Keys, values and writes in one buffer, as the addon takes and gives them: src/packed.rs has the form.

// The most bytes of UTF-8 for each unit of a string.
const UTF8_BYTES_MAX = 3

// The kinds of writes.
const REMOVAL = 0
const VALUE = 1
const OPERAND = 2
const EXPIRING = 3
const RANGE = 4
const KEYSPACE = 5

// The lengths of a key and a value.
const PAIR_BYTES = 8

/** Keys or writes, one after the other. */
class PackedWriter {
  #buffer = Buffer.allocUnsafeSlow(1024)
  #length = 0

  addKey (key) {
    const head = this.#reserve(4 + bytesMax(key))
    this.#length += 4
    this.#buffer.writeUInt32LE(this.#add(key), head)
  }

  addDel (key) {
    const head = this.#reserve(5 + bytesMax(key))
    this.#buffer[head] = REMOVAL
    this.#length += 5
    this.#buffer.writeUInt32LE(this.#add(key), head + 1)
  }

  addPut (key, value) {
    this.#reserve(1 + PAIR_BYTES + bytesMax(key) + bytesMax(value))
    this.#buffer[this.#length++] = VALUE
    this.#addPair(key, value)
  }

  addMerge (key, operand) {
    this.#reserve(1 + PAIR_BYTES + bytesMax(key) + bytesMax(operand))
    this.#buffer[this.#length++] = OPERAND
    this.#addPair(key, operand)
  }

  addPutFor (key, value, milliseconds) {
    const head = this.#reserve(9 + PAIR_BYTES + bytesMax(key) + bytesMax(value))
    this.#buffer[head] = EXPIRING
    this.#buffer.writeDoubleLE(milliseconds, head + 1)
    this.#length += 9
    this.#addPair(key, value)
  }

  /** Removes a range, in the form of `range`. */
  addDelRange ({ lower, hasLower, upper, hasUpper }) {
    const flags = (lower == null ? 0 : 1 + 2 * hasLower) + (upper == null ? 0 : 4 + 8 * hasUpper)
    const head = this.#reserve(5 + PAIR_BYTES + bytesMax(lower ?? '') + bytesMax(upper ?? ''))
    this.#buffer[head] = RANGE
    this.#buffer.writeUInt32LE(flags, head + 1)
    this.#length += 5
    this.#addPair(lower ?? '', upper ?? '')
  }

  /** The writes that follow are of the keyspace with this number. */
  addIn (number) {
    const head = this.#reserve(5)
    this.#buffer[head] = KEYSPACE
    this.#buffer.writeUInt32LE(number, head + 1)
    this.#length += 5
  }

  clear () {
    this.#length = 0
  }

  get bytes () {
    return this.#buffer.subarray(0, this.#length)
  }

  #addPair (first, second) {
    const head = this.#length
    this.#length += PAIR_BYTES
    this.#buffer.writeUInt32LE(this.#add(first), head)
    this.#buffer.writeUInt32LE(this.#add(second), head + 4)
  }

  #add (bytes) {
    let length
    if (typeof bytes === 'string') {
      length = this.#buffer.write(bytes, this.#length)
    } else {
      this.#buffer.set(bytes, this.#length)
      length = bytes.byteLength
    }
    this.#length += length
    return length
  }

  // Returns where the bytes begin.
  #reserve (bytes) {
    const needed = this.#length + bytes
    if (needed > this.#buffer.byteLength) {
      const larger = Buffer.allocUnsafeSlow(Math.max(needed, 2 * this.#buffer.byteLength))
      this.#buffer.copy(larger, 0, 0, this.#length)
      this.#buffer = larger
    }
    return this.#length
  }
}

// The most bytes that a key or value takes; exactly that many for long text.
function bytesMax (bytes) {
  if (typeof bytes !== 'string') return bytes.byteLength
  return bytes.length > 1024 ? Buffer.byteLength(bytes) : UTF8_BYTES_MAX * bytes.length
}

/** The keys, packed. */
function packKeys (keys) {
  const packed = new PackedWriter()
  for (const key of keys) packed.addKey(key)
  return packed.bytes
}

/** The values of a packed buffer in this format; undefined where there is none. */
function unpackValues (packed, format) {
  const values = []
  let offset = 0
  while (offset < packed.byteLength) {
    const length = packed.readUInt32LE(offset) - 1
    offset += 4
    if (length < 0) {
      values.push(undefined)
    } else {
      values.push(part(packed, offset, offset + length, format))
      offset += length
    }
  }
  return values
}

const TYPES = ['put', 'del', 'merge', 'clear']

/** The writes of a change. Their keys and values share the memory of the buffer. */
function unpackWrites (packed, keyspaces) {
  const writes = []
  let offset = 0
  const taken = (length) => packed.subarray(offset, offset += length)
  while (offset < packed.byteLength) {
    const type = TYPES[packed.readUInt32LE(offset)]
    const keyspace = keyspaces[packed.readUInt32LE(offset + 4)]
    const keyLength = packed.readUInt32LE(offset + 8)
    const valueLength = packed.readUInt32LE(offset + 12) - 1
    const expiresAt = Number(packed.readBigUInt64LE(offset + 16))
    offset += 24
    const key = taken(keyLength)
    const value = valueLength < 0 ? undefined : taken(valueLength)
    if (type === 'clear') writes.push({ type, keyspace, gte: key, lt: value })
    else if (type === 'del') writes.push({ type, keyspace, key })
    else if (expiresAt > 0) writes.push({ type, keyspace, key, value, expiresAt: new Date(expiresAt) })
    else writes.push({ type, keyspace, key, value })
  }
  return writes
}

/** Bytes of a buffer in this format. Those that are not text share the memory of the buffer. */
function part (buffer, start, end, format) {
  switch (format) {
    case 'utf8':
      return buffer.toString('utf8', start, end)
    case 'view':
      return new Uint8Array(buffer.buffer, buffer.byteOffset + start, end - start)
    default:
      return buffer.subarray(start, end)
  }
}

module.exports = { PackedWriter, packKeys, unpackValues, unpackWrites, part }
