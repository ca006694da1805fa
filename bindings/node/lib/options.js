'use strict'

const native = require('./native')

// Windrow's options of databases, by their names in the addon.
const NAMES = new Set(native.optionNames())

/** The options of an open for the addon. Others than Windrow's are for hooks, as in other abstract-level databases. */
function openOptions (options) {
  return {
    multithreading: options.multithreading === true,
    database: named(Object.entries(options).filter(([name]) => NAMES.has(snakeCase(name)))),
    keyspace: keyspaceOptions(options.keyspace),
    mergeOperators: mergeOperators(options)
  }
}

/** The options of a keyspace for the addon. */
function keyspaceOptions (options) {
  return named(Object.entries(options ?? {}))
}

/** Options by their names in the addon. */
function named (entries) {
  const given = entries.filter(([, value]) => value != null)
  return Object.fromEntries(given.map(([name, value]) => [snakeCase(name), value]))
}

/** The names of operators by those of keyspaces. The database itself has the keyspace `default`. */
function mergeOperators ({ mergeOperator, mergeOperators }) {
  const operators = { ...mergeOperators }
  if (mergeOperator != null) operators.default = mergeOperator
  return operators
}

function snakeCase (name) {
  return name.replace(/[A-Z]/g, (letter) => '_' + letter.toLowerCase())
}

module.exports = { keyspaceOptions, openOptions }
