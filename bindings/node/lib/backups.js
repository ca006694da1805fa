'use strict'

const native = require('./native')
const { checkLocation, checkWhole, milliseconds } = require('./checks')
const { errorWith } = require('./errors')

/** Runs a call of backups, with the addon's backups. */
let run

class Backups {
  #location
  // The addon's backups, until the close.
  #native = null
  // The end of the last call: one call at a time works.
  #last = Promise.resolve()

  static async open (location, options) {
    checkLocation(location)
    const { readOnly = false, bytesPerSecond = 0 } = options ?? {}
    checkWhole(bytesPerSecond, 'bytesPerSecond')
    const backups = new Backups()
    backups.#native = await native.openBackups(location, Boolean(readOnly), bytesPerSecond)
    backups.#location = location
    return backups
  }

  get location () {
    return this.#location
  }

  async list () {
    const listed = await this.#call((native) => native.list())
    return listed.map(({ number, created, sequence, files, bytes, ownBytes, error, code }) => {
      if (code !== undefined) return { number, error: errorWith(code, error) }
      return { number, created: new Date(created), sequence, files, bytes, ownBytes }
    })
  }

  async verify (number) {
    if (number !== undefined) checkWhole(number, 'number')
    return this.#call((native) => native.verify(number))
  }

  async restore (location, number) {
    checkLocation(location)
    if (number !== undefined) checkWhole(number, 'number')
    return this.#call((native) => native.restore(location, number))
  }

  async keepNewest (count) {
    checkWhole(count, 'count')
    return this.#call((native) => native.keepNewest(count))
  }

  async removeOlder (seconds) {
    const age = Math.min(Math.round(milliseconds(seconds, 'seconds')), Number.MAX_SAFE_INTEGER)
    return this.#call((native) => native.removeOlder(age))
  }

  async remove (number) {
    checkWhole(number, 'number')
    await this.#call((native) => native.remove(number))
  }

  async close () {
    if (this.#native !== null) {
      this.#call((native) => native.close())
      this.#native = null
    }
    return this.#last
  }

  async [Symbol.asyncDispose] () {
    return this.close()
  }

  /** Makes a call after those before it. */
  #call (call) {
    const backups = this.#native
    if (backups === null) {
      throw errorWith('LEVEL_BACKUPS_NOT_OPEN', 'Backups are not open')
    }
    const outcome = this.#last.then(() => call(backups))
    this.#last = outcome.then(() => {}, () => {})
    return outcome
  }

  static {
    run = (backups, call) => {
      if (!(backups instanceof Backups)) {
        throw new TypeError("The argument 'backups' must be an instance of Backups")
      }
      return backups.#call(call)
    }
  }
}

module.exports = { Backups, run }
