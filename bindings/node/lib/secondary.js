'use strict'

const native = require('./native')
const { checkLocation, milliseconds } = require('./checks')
const { errorWith } = require('./errors')
const { openOptions } = require('./options')

/** Makes the class: `state` makes a database of one that the addon has opened. */
function secondaries (state) {
  return class Secondary {
    #location
    #options
    // The addon's secondary, until the close.
    #native = null

    static async open (location, options) {
      checkLocation(location)
      const secondary = new Secondary()
      secondary.#location = location
      secondary.#options = options ?? {}
      secondary.#native = await native.openSecondary(location, openOptions(secondary.#options))
      return secondary
    }

    get location () {
      return this.#location
    }

    async database () {
      return this.#state((native) => native.database())
    }

    async catchUp () {
      return this.#state((native) => native.catchUp())
    }

    async follow (seconds) {
      const interval = milliseconds(seconds, 'seconds')
      await this.#opened().follow(interval)
    }

    async close () {
      const opened = this.#native
      this.#native = null
      await opened?.close()
    }

    async [Symbol.asyncDispose] () {
      return this.close()
    }

    async #state (call) {
      const opened = await call(this.#opened())
      const db = state(this.#location, this.#options, opened)
      await db.open()
      return db
    }

    #opened () {
      if (this.#native === null) {
        throw errorWith('LEVEL_SECONDARY_NOT_OPEN', 'Secondary is not open')
      }
      return this.#native
    }
  }
}

module.exports = { secondaries }
