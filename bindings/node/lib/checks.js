'use strict'

// Checks of arguments.

function checkLocation (location) {
  checkText(location, 'location')
}

function checkName (name) {
  checkText(name, 'name')
}

function checkText (text, name) {
  if (typeof text !== 'string' || text === '') {
    throw new TypeError(`The first argument '${name}' must be a non-empty string`)
  }
}

function checkWhole (number, name) {
  if (!Number.isSafeInteger(number) || number < 0) {
    throw new TypeError(`The argument '${name}' must be a whole number that is not negative`)
  }
}

/** Seconds as milliseconds. */
function milliseconds (seconds, name) {
  if (typeof seconds !== 'number' || !(seconds >= 0)) {
    throw new TypeError(`'${name}' must be a number of seconds that is not negative`)
  }
  return seconds * 1000
}

module.exports = { checkLocation, checkName, checkWhole, milliseconds }
