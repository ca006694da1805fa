'use strict'

// Opens a database, reads and writes, and ends without a close.

const { WindrowLevel } = require('windrow')

async function main (location) {
  const db = new WindrowLevel(location)
  try {
    await db.open()
  } catch (error) {
    process.send({ code: error.cause.code })
    return
  }
  await db.put('child', 'was here')
  process.send({ value: await db.get('key') })
}

main(process.argv[2]).then(() => process.disconnect())
