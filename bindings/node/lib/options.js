'use strict'

// Windrow's options of databases by their names here and in the addon.
const NAMES = new Map([
  ['createIfMissing', 'create_if_missing'],
  ['errorIfExists', 'error_if_exists'],
  ['durability', 'durability'],
  ['recovery', 'recovery'],
  ['memoryBudget', 'memory_budget'],
  ['cacheBytes', 'cache_bytes'],
  ['blockSource', 'block_source'],
  ['maxWalBytes', 'max_wal_bytes'],
  ['backgroundThreads', 'background_threads'],
  ['openFilesMax', 'open_files_max'],
  ['compactionBytesPerSecond', 'compaction_bytes_per_second'],
  ['reserveBytes', 'reserve_bytes'],
  ['changeRetentionBytes', 'change_retention_bytes'],
  ['changeRetentionIdle', 'change_retention_idle'],
  ['scrubInterval', 'scrub_interval']
])

/** The options of an open for the addon. Others than Windrow's have no effect, as in other abstract-level databases. */
function openOptions (options) {
  const database = {}
  for (const [name, native] of NAMES) {
    if (options[name] != null) database[native] = options[name]
  }
  return {
    multithreading: options.multithreading === true,
    database,
    keyspace: keyspaceOptions(options.keyspace),
    mergeOperators: mergeOperators(options)
  }
}

/** The options of a keyspace for the addon. */
function keyspaceOptions (options) {
  const keyspace = {}
  for (const [name, value] of Object.entries(options ?? {})) {
    if (value != null) keyspace[snakeCase(name)] = value
  }
  return keyspace
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
