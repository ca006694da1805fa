'use strict'

const fs = require('fs')
const os = require('os')
const path = require('path')
const { WindrowLevel } = require('windrow')

/** A new folder. */
function folder () {
  return fs.mkdtempSync(path.join(os.tmpdir(), 'windrow-'))
}

/** An open database in a new folder, which the test closes at its end. */
async function opened (t, options) {
  const db = new WindrowLevel(folder(), options)
  await db.open()
  t.after(() => db.close())
  return db
}

/** What assert.rejects takes for an error with this code, or an error of an open with such a cause. */
function withCode (code) {
  return (error) => {
    const found = error.cause?.code ?? error.code
    if (found !== code) throw new Error(`expected ${code}, found ${found}: ${error.message}`, { cause: error })
    return true
  }
}

/** Numbers that look random, from 0 to before `below`, the same ones for each seed. */
function randomFrom (seed) {
  let state = seed * 2654435761 >>> 0
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below
  }
}

module.exports = { folder, opened, withCode, randomFrom }
