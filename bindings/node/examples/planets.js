'use strict'

// The ten lines of the README, and a little more.

const { WindrowLevel } = require('windrow')

async function main () {
  const db = new WindrowLevel('planets.db', { valueEncoding: 'json' })

  await db.put('earth', { moons: 1 })
  await db.batch()
    .put('mars', { moons: 2 })
    .put('venus', { moons: 0 })
    .write({ sync: true })
  console.log(await db.get('earth'), db.getSync('mars'), await db.get('pluto'))

  const snapshot = db.snapshot()
  await db.clear({ gte: 'v' })
  for await (const [name, { moons }] of db.iterator({ gt: 'earth', snapshot })) {
    console.log(`${name}: ${moons}`)
  }
  await snapshot.close()

  // A sublevel has keys and an encoding of its own, in the same database.
  const notes = db.sublevel('notes', { valueEncoding: 'utf8' })
  await db.batch([
    { type: 'put', key: 'mars', value: 'has two moons', sublevel: notes },
    { type: 'del', key: 'mars' }
  ])
  console.log(await notes.iterator().all(), await db.keys({ lt: '!', reverse: true }).all())
  await db.close()
}

main()
