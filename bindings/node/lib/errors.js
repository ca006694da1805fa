'use strict'

/** An error with a code, as those of abstract-level. */
function errorWith (code, message, name = 'Error') {
  return Object.assign(new Error(message), { code, name })
}

module.exports = { errorWith }
