'use strict'

// Workers and the main thread share one database.

const { isMainThread, Worker, workerData } = require('worker_threads')
const { WindrowLevel } = require('windrow')

const db = new WindrowLevel('shared.db', { multithreading: true })

async function main () {
  if (!isMainThread) {
    for (let i = 0; i < 100; i++) await db.put(`worker ${workerData} ${i}`, 'value')
    return db.close()
  }
  await db.open()
  await Promise.all([1, 2, 3].map((number) => new Promise((resolve, reject) => {
    const worker = new Worker(__filename, { workerData: number })
    worker.once('error', reject)
    worker.once('exit', resolve)
  })))
  console.log((await db.keys().all()).length, 'keys')
  await db.close()
}

main()
