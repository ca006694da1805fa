'use strict'

const { checkWhole, milliseconds } = require('./checks')
const { errorWith } = require('./errors')
const { unpackWrites } = require('./packed')
const { kCall } = require('./symbols')

// The longest wait of the addon by one call: setTimeout has no longer ones either.
const WAIT_MS_MAX = 0x7fffffff

class Changes {
  #db
  // Opens the addon's feed, by the first call that needs it.
  #open
  #native = null
  // What a call has found that was interrupted.
  #found = null
  #timeout
  #signal
  // The end of the last call: one call at a time works.
  #last = Promise.resolve()
  // What ends a wait: rejects the call that waits.
  #interrupt = () => {}
  #isClosed = false

  constructor (db, open, options) {
    const { timeout = 0, signal } = options ?? {}
    this.#timeout = milliseconds(timeout, 'timeout')
    this.#signal = signal
    this.#db = db
    this.#open = open
    db.attachResource(this)
  }

  /** The next change, or undefined if there was none in so many seconds. */
  async wait (timeout = Infinity, options) {
    return this.#next(milliseconds(timeout, 'timeout'), options?.signal)
  }

  async * [Symbol.asyncIterator] () {
    for (;;) {
      const change = await this.#next(this.#timeout, this.#signal)
      if (change === undefined) return
      yield change
    }
  }

  async close () {
    if (!this.#isClosed) {
      this.#isClosed = true
      this.#db.detachResource(this)
      this.#interrupt(notOpen())
      this.#native?.stop()
      this.#last = this.#last.then(() => this.#native?.close()).then(() => { this.#native = null })
    }
    return this.#last
  }

  async [Symbol.asyncDispose] () {
    return this.close()
  }

  /** Reads after the calls before it. An interruption ends it at once, and loses nothing. */
  #next (timeout, signal) {
    if (this.#isClosed) throw notOpen()
    signal?.throwIfAborted()
    return new Promise((resolve, reject) => {
      const call = { hasEnded: false }
      const ending = (settle) => (outcome) => {
        call.hasEnded = true
        signal?.removeEventListener('abort', abort)
        settle(outcome)
      }
      call.resolve = ending(resolve)
      call.reject = ending(reject)
      call.interrupt = (error) => {
        call.reject(error)
        this.#native?.stop()
      }
      const abort = () => call.interrupt(signal.reason)
      signal?.addEventListener('abort', abort)
      this.#last = this.#last.then(() => this.#read(timeout, call)).catch(call.reject)
    })
  }

  /** Reads, and waits as long as there is nothing. */
  async #read (timeout, call) {
    if (call.hasEnded) return
    if (this.#isClosed) throw notOpen()
    this.#interrupt = call.interrupt
    const until = performance.now() + timeout
    this.#native ??= await this.#open()
    while (!call.hasEnded) {
      this.#found ??= await this.#native.next()
      if (call.hasEnded) return
      const found = this.#found
      const left = until - performance.now()
      if (found !== null || left <= 0) {
        this.#found = null
        return call.resolve(found === null ? undefined : unpack(found))
      }
      await this.#native.wait(Math.min(left, WAIT_MS_MAX))
    }
  }
}

class Consumer {
  #db
  #name
  #native

  constructor (db, name, native) {
    this.#db = db
    this.#name = name
    this.#native = native
  }

  get name () {
    return this.#name
  }

  changes (options) {
    return new Changes(this.#db, () => this.#db[kCall](() => this.#native.changes()), options)
  }

  async acknowledged () {
    return this.#db[kCall](() => this.#native.acknowledged())
  }

  async acknowledge (sequence) {
    checkWhole(sequence, 'sequence')
    return this.#db[kCall](() => this.#native.acknowledge(sequence))
  }
}

/** A change of the addon as one for the caller. */
function unpack ({ kind, sequence, firstSequence, keyspaces, writes }) {
  switch (kind) {
    case 'batch':
      return { type: kind, sequence, firstSequence, writes: unpackWrites(writes, keyspaces) }
    case 'keyspaceRenamed':
      return { type: kind, sequence, from: keyspaces[0], to: keyspaces[1] }
    case 'tablesAdded':
      return { type: kind, sequence, keyspaces }
    default:
      return { type: kind, sequence, keyspace: keyspaces[0] }
  }
}

function notOpen () {
  return errorWith('LEVEL_CHANGES_NOT_OPEN', 'Changes are not open')
}

module.exports = { Changes, Consumer }
