'use strict'

// Names of what the classes of the package have for each other.
module.exports = {
  /** The addon's database, while it is open. */
  kNative: Symbol('native'),
  /** Begins to use an addon's database; null ends it. */
  kAttach: Symbol('attach'),
  /** Makes a call when the database is open. */
  kCall: Symbol('call')
}
