// LevelDB for C#, the assembly leveldb-sharp, on Windrow: each class of it, with answers that are checked.
//
// usage: csharp.exe FOLDER

using System;
using System.Collections.Generic;
using LevelDB;

static class Program {
    static int checks;

    static void Equal(object expected, object found) {
        if (!Equals(expected, found)) throw new Exception($"check {checks}: expected {expected}, found {found}");
        checks++;
    }

    static void Fails(string words, Action action) {
        try {
            action();
        } catch (Exception error) {
            if (!error.Message.Contains(words)) throw new Exception($"check {checks}: no \"{words}\" in {error.Message}");
            checks++;
            return;
        }
        throw new Exception($"check {checks}: no error with \"{words}\"");
    }

    static string Entries(DB db) {
        var entries = new List<string>();
        foreach (var entry in db) entries.Add(entry.Key + "=" + entry.Value);
        return string.Join(" ", entries);
    }

    static void Read(DB db) {
        db.Put("b", "2");
        db.Put(new WriteOptions { Sync = true }, "a", "1");
        db["c"] = "3";
        Equal("1", db.Get("a"));
        Equal("3", db["c"]);
        Equal(null, db.Get("missing"));
        Equal("a=1 b=2 c=3", Entries(db));

        var snapshot = db.CreateSnapshot();
        db.Delete("b");
        db.Delete(new WriteOptions(), "missing");
        Equal(null, db.Get("b"));
        Equal("2", db.Get(new ReadOptions { Snapshot = snapshot, VerifyChecksums = true, FillCache = false }, "b"));
        Equal("a=1 c=3", Entries(db));
    }

    static void Move(DB db) {
        db.Write(new WriteBatch().Put("d", "4").Delete("a").Put("e", "5"));
        db.Write(new WriteOptions { Sync = true }, new WriteBatch().Put("\u00e4", "umlaut"));
        var dropped = new WriteBatch().Put("f", "6");
        dropped.Clear();
        db.Write(dropped);
        Equal("c=3 d=4 e=5 \u00e4=umlaut", Entries(db));
        using (var iterator = new Iterator(db, null)) {
            iterator.SeekToLast();
            Equal("\u00e4", iterator.Key);
            iterator.Previous();
            Equal("5", iterator.Value);
            iterator.Seek("cc");
            Equal("d", iterator.Key);
            iterator.SeekToFirst();
            iterator.Previous();
            Equal(false, iterator.IsValid);
        }
    }

    static void Main(string[] arguments) {
        var folder = arguments[0];
        var options = new Options {
            CreateIfMissing = true,
            ErrorIfExists = true,
            ParanoidChecks = true,
            WriteBufferSize = 1 << 20,
            MaxOpenFiles = 100,
            BlockCache = new Cache(1 << 20),
            BlockSize = 8192,
            BlockRestartInterval = 8,
            Compression = CompressionType.SnappyCompression,
        };
        Fails("there is no database", () => new DB(new Options(), folder));
        using (var db = DB.Open(options, folder)) {
            Fails("is open already", () => DB.Open(options, folder));
            Read(db);
            Move(db);
            db.Compact();
            db.CompactRange("a", "d");
            Equal(true, db.GetProperty("leveldb.stats").Length > 0);
            Equal(null, db.GetProperty("unknown"));
            Fails("65536", () => db.Put(new string('k', 70000), "value"));
        }
        Fails("there is a database", () => DB.Open(options, folder));
        DB.Repair(new Options(), folder);
        using (var db = DB.Open(new Options(), folder)) Equal("c=3 d=4 e=5 \u00e4=umlaut", Entries(db));
        DB.Destroy(new Options(), folder);
        // What nobody has disposed of is freed by finalizers.
        GC.Collect();
        GC.WaitForPendingFinalizers();
        Console.WriteLine($"{checks} checks");
    }
}
