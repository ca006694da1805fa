'use strict'

// The addon, which build.sh puts into the package.
module.exports = require('../windrow.node')
