'use strict'

const { AbstractSnapshot } = require('abstract-level')

class Snapshot extends AbstractSnapshot {
  #native

  constructor (native, options) {
    super(options)
    this.#native = native
  }

  /** The addon's snapshot of one that a caller has passed, if there is one. */
  static native (snapshot) {
    return snapshot?.#native
  }

  get sequence () {
    return this.#native.sequence()
  }

  async _close () {
    this.#native.close()
  }
}

module.exports = { Snapshot }
