'use strict'

// The suite of abstract-level, unchanged.

const fs = require('fs')
const os = require('os')
const path = require('path')
const test = require('tape')
const suite = require('abstract-level/test')
const { WindrowLevel } = require('windrow')

suite({
  test,
  factory (options) {
    return new WindrowLevel(fs.mkdtempSync(path.join(os.tmpdir(), 'windrow-')), options)
  }
})
