#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# query.t - SQL over samples says what it says over the same rows in plain SQLite
. "${0%/*}/../tap.sh"
requires jq --version
requires python3 -c 'import sqlite3'

cd "$tmp" || bail "cd"

# Three sources, the later ones with more classes; all that a comparison can get wrong.
cat >write.py <<'END'
import csv, random
random.seed(5)
floats = ["inf", "-inf", "nan", "0.0", "-0.0", "1e308", "1e-300", "-1.5", "9007199254740992",
          "0.1", "100.0"]
ints = [0, 1, -1, 7, 100, 2**53, 2**53 + 1, -2**53 - 1, 2**63 - 1, -2**63, 2**62]
texts = ["", "a", "A", "ä", "€ x", "a%b", "a_b", "it's", "x\ny", "zebra", "7", "NULL"]
def number(i):
    return random.choice(ints) if i % 5 == 0 else random.randrange(-50, 50)
def real(i):
    return random.choice(floats) if i % 4 == 0 else repr(random.gauss(0, 30))
for part, (count, classes) in enumerate([(2500, 3), (1200, 5), (700, 6)]):
    with open(f"part{part}.csv", "w", newline="") as f:
        out = csv.writer(f)
        out.writerow(["key", "label", "split", "n", "up", "x", "text", "size"])
        for i in range(count):
            label = random.choice(["cat", "dog", "it's", "Dog", "ünï", "new"][:classes] + [""])
            out.writerow([f"{part}/{random.randrange(10**9):09d}-{i}", label,
                          random.choice(["train", "val", ""]), number(i),
                          part * 10000 + i, real(i), random.choice(texts) * (i % 3),
                          random.randrange(5)])
END
must python3 write.py
must stele build -q --order=source part0.csv image@a
must stele append -q --order=source part1.csv image@b
must stele append -q part2.csv image@c
stele ls image@c | awk 'NR % 6 == 0 || (NR > 700 && NR < 1400)' >dropped
must stele snapshot create --keys-from=dropped image@d

# The same rows: keys, ids and sizes from ls, values from the sources.
cat >plain.py <<'END'
import csv, json, math, sqlite3, subprocess
db = sqlite3.connect(":memory:")
db.execute("""CREATE TABLE samples(id INTEGER PRIMARY KEY, key TEXT, size INTEGER, label INTEGER,
              split TEXT, n INTEGER, up INTEGER, x REAL, text TEXT,
              field_size INTEGER, label_name TEXT)""")
rows = {}
for part in range(3):
    with open(f"part{part}.csv", newline="") as f:
        rows.update({row["key"]: row for row in csv.DictReader(f)})
listed = subprocess.run(["stele", "ls", "--json", "image@d"], capture_output=True, check=True)
for line in listed.stdout.splitlines():
    s = json.loads(line)
    r = rows[s["key"]]
    db.execute("INSERT INTO samples VALUES(?,?,?,?,?,?,?,?,?,?,?)", (
        s["id"], s["key"], s["size"], s["fields"]["label"], r["split"] or None, int(r["n"]),
        int(r["up"]), float(r["x"]), r["text"], int(r["size"]), r["label"] or None))
count = db.execute("SELECT count(*) FROM samples").fetchone()[0]

def plain(sql):
    cursor = db.execute(sql)
    return [d[0] for d in cursor.description], cursor.fetchall()

def ours(sql, *options):
    run = subprocess.run(["stele", "query", *options, "image@d", sql], capture_output=True)
    return run.returncode, run.stdout.decode(), run.stderr.decode()

def shown(value):
    """As JSON has it."""
    if isinstance(value, float) and not math.isfinite(value):
        return "inf" if value > 0 else "-inf"
    return value

def differs(sql):
    names, wanted = plain(sql)
    status, out, err = ours(sql, "--json")
    got = [tuple(json.loads(line)[n] for n in names) for line in out.splitlines()]
    wanted = [tuple(map(shown, row)) for row in wanted]
    if status == 0 and got == wanted:
        return ""
    return f"{sql}: status {status} {err}\n got {got[:3]} of {len(got)}, " \
           f"wanted {wanted[:3]} of {len(wanted)}\n"
END
cat >random-queries.py <<'END'
import random, sys
from plain import count, db, differs, plain
random.seed(int(sys.argv[1]))
sample = plain("SELECT * FROM samples WHERE id % 7 = 0")[1]
names = plain("SELECT * FROM samples LIMIT 1")[0]
integers, reals = ["id", "size", "label", "n", "up", "field_size"], ["x"]
texts = ["key", "split", "text", "label_name"]

def quote(value):
    if value is None:
        return "NULL"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if value in (float("inf"), float("-inf")):
        return "9e999" if value > 0 else "-9e999"
    return repr(value)

def constant(column):
    chance = random.random()
    if chance < 0.6: # one that is there
        return quote(random.choice(sample)[names.index(column)])
    if chance < 0.7:
        return quote(random.choice(["7", "-1.5", "cat", "", "zz", "100"]))
    if chance < 0.75:
        return random.choice(["NULL", "x'61'", "n", "x", "1e300", "-1e300",
                              "9223372036854775808.0"])
    if column in texts:
        return quote(random.choice(["a", "dog", "train", "it's", "0/5", "€"]))
    return random.choice([str(random.randrange(-60, 60)), repr(random.gauss(0, 30)), "0.5", "-0.0",
                          "9007199254740992", "9007199254740993", "9223372036854775807",
                          "-9223372036854775808", "9007199254740993.0",
                          str(random.randrange(5000))])

def comparison():
    column = random.choice(integers + reals * 3 + texts)
    kind = random.random()
    if kind < 0.5:
        op = random.choice(["=", "<", "<=", ">", ">=", "<>", "IS", "IS NOT"])
        sides = [column, constant(column)]
        return f" {op} ".join(sides if random.random() < 0.8 else reversed(sides))
    if kind < 0.65:
        some = ", ".join(constant(column) for _ in range(random.randrange(1, 6)))
        return f"{column} {random.choice(['', 'NOT '])}IN ({some})"
    if kind < 0.8:
        return f"{column} BETWEEN {constant(column)} AND {constant(column)}"
    if kind < 0.85:
        return f"{column} IS {random.choice(['', 'NOT '])}NULL"
    if column in texts:
        return random.choice([f"{column} LIKE '%a%'", f"{column} = 'DOG' COLLATE NOCASE",
                              f"{column} GLOB '0/*'", f"length({column}) > 2"])
    return random.choice([f"{column} % 3 = 1", f"{column} + 1 > n", f"-{column} < 5"])

def predicate(depth=0):
    if depth == 3 or random.random() < 0.3:
        return comparison()
    parts = [predicate(depth + 1) for _ in range(random.randrange(2, 4))]
    text = "(" + random.choice([" AND ", " AND ", " OR "]).join(parts) + ")"
    return "NOT " + text if random.random() < 0.1 else text

def query():
    where = predicate()
    wanted = ", ".join(["id", *random.sample(names[1:], random.randrange(4))])
    order = random.choice(["id", "id", "id", "id DESC", "x, id", "text DESC, id"])
    limit = random.choice(["", "", "", " LIMIT 5", " LIMIT 20 OFFSET 30"])
    return f"SELECT {wanted} FROM samples WHERE {where} ORDER BY {order}{limit}"

wrong, found = "", 0
for _ in range(int(sys.argv[2])):
    sql = query()
    found += len(plain(sql)[1]) > 0
    wrong += differs(sql)
print(wrong, end="")
print(f"{found} find something", file=sys.stderr)
END

is 4400 "$(stele query image@c 'SELECT count(*) FROM samples' | tail -n 1)" "all samples"
is "i64 i64 i64 i64 f64 utf8 i64" "$(stele info --json image@d |
	jq -r '[.snapshot.fields[].type] | join(" ")')" "of all types"
run python3 random-queries.py 1 600
is "0 " "$status $out" "600 random predicates: as plain SQLite"
ok "most of them find something" test "${err%% *}" -gt 200 || diag "$err"

cat >chosen.py <<'END'
from plain import differs
for sql in """SELECT count(*), min(id), max(id), sum(size), avg(n % 100) FROM samples
SELECT label, label_name, count(*) AS many FROM samples GROUP BY label ORDER BY label
SELECT DISTINCT split FROM samples ORDER BY 1
SELECT a.id, b.id AS c FROM samples a JOIN samples b ON b.id = a.id + 1 WHERE a.n = 7 ORDER BY 1
SELECT a.key, b.size FROM samples a JOIN samples b ON b.key = a.key WHERE a.n = 7 ORDER BY a.id
WITH t AS (SELECT id FROM samples WHERE x > 0) SELECT count(*) AS c FROM t
SELECT id FROM samples WHERE id IN (SELECT max(id) FROM samples GROUP BY label) ORDER BY id
SELECT id FROM samples WHERE n > (SELECT avg(n / 100000) FROM samples) ORDER BY id
SELECT rowid AS r, * FROM samples WHERE up BETWEEN 500 AND 520 OR up = 11000 ORDER BY id
SELECT id, row_number() OVER (PARTITION BY split ORDER BY id) AS r FROM samples ORDER BY id
SELECT id FROM samples WHERE key IN (SELECT key FROM samples WHERE field_size = 3) ORDER BY id
SELECT size, key FROM samples ORDER BY key
SELECT text FROM samples ORDER BY text, id
SELECT id FROM samples WHERE label_name = 'DOG' COLLATE NOCASE ORDER BY id
SELECT count(*) AS c FROM samples WHERE label_name COLLATE NOCASE IN ('DOG', 'CAT')
SELECT id FROM samples WHERE id > 9e999 OR id < -9e999 OR id = 3.5
SELECT id FROM samples ORDER BY id DESC LIMIT 3
SELECT n FROM samples WHERE n IN (7, 9223372036854775807, -9223372036854775808, 1e2) ORDER BY id
SELECT 1 AS one UNION SELECT 2""".splitlines():
    print(differs(sql), end="")
END
run python3 chosen.py
is "0 " "$status $out$err" "joins, groups, windows, subqueries: as plain SQLite"

# reads WHERE: how many the query takes
reads() {
	STELE_BACKEND=threads strace -f -qq -e trace=preadv2,preadv,pread64 -o trace \
		stele query image@d "SELECT id FROM samples WHERE $1" >/dev/null
	grep -c pread trace
}
requires strace -V
all=$(reads 'up >= 0 AND n < 60')
ok "a column that no sample is left for is not read" test "$(reads 'up < 0 AND n < 60')" -lt "$all"
ok "nor where all were excluded" test "$(reads 'up > 30000 AND n < 60')" -lt "$all"

# ---- what is printed ----

printf '%s\n' key,x,n,t a,inf,1,é 'b,-inf,-5,"x, ""q"""' c,nan,7, d,1.5,0,NULL e,2,0,x >t.csv
must stele build -q --order=source t.csv small@v1
run stele query small 'SELECT key, x, n, t FROM samples ORDER BY key'
is 'key,x,n,t
a,inf,1,é
b,-inf,-5,"x, ""q"""
c,,7,""
d,1.5,0,NULL
e,2.0,0,x' "$out" "CSV"
run stele query --json small "SELECT key, x, n FROM samples WHERE key < 'd' ORDER BY key"
is '{"key":"a","x":"inf","n":1}
{"key":"b","x":"-inf","n":-5}
{"key":"c","x":null,"n":7}' "$out" "JSON"
run stele query --json small "SELECT key, n, n + 1 AS key, n FROM samples WHERE key = 'a'"
is '{"key":"a","n":1,"key:1":2,"n:1":1}' "$out" "JSON: columns of one name"
run stele query --ids small 'SELECT key, id FROM samples WHERE n >= 0 ORDER BY id DESC LIMIT 2'
is "$(stele query small 'SELECT id FROM samples WHERE n >= 0 ORDER BY id DESC LIMIT 2' |
	tail -n 2)" "$out" "ids"
run stele query --table small "SELECT key, n, t FROM samples WHERE key <> 'c' ORDER BY key"
is 'key   n  t
a     1  é
b    -5  x, "q"
d     0  NULL
e     0  x' "$out" "a table"
run stele query --table image@d 'SELECT id, key FROM samples'
is "0 $(stele query image@d 'SELECT count(*) FROM samples' | tail -n 1)" \
	"$status $(($(wc -l <<<"$out") - 1))" "a long one"
if command -v script >which 2>&1; then
	script -qec "stele query small 'SELECT key, n FROM samples'" typescript </dev/null >shown
	ok "a table on a terminal" grep -q '^key   *n' shown
else
	skip_block 1 "needs script"
fi
run stele query small "SELECT x'00ff' AS b"
is 0 "$status" "bytes"

# ---- what finds nothing ----

mkdir -p classes/{cat,dog} && echo x >classes/cat/1 && echo y >classes/dog/1
must stele build -q classes classes.stele
for way in csv ids json table; do
	run stele query --$way classes.stele "SELECT id FROM samples WHERE label = 'cat'"
	is "0 hint: 'label' is the number of a class: its name is in label_name" "$status $err" \
		"a class by its name, --$way"
done
run stele query classes.stele "SELECT id, label FROM samples WHERE size > 9"
is "0 " "$status $err" "not where another column is asked for"
run stele query classes.stele "SELECT id FROM samples WHERE label_name = 'cat'"
is "0 id 0 " "$status $(xargs <<<"$out") $err" "nor where it finds one"

# ---- what is refused ----

# refused SQL PATTERN
refused() {
	run stele query small "$1"
	is "2 " "$status $out" "refused: $1"
	ok "and why" grep -qE "^stele: cannot query the samples: .*$2" <<<"$err" || diag "$err"
}
refused 'SELECT widht FROM samples' "no such column: widht \(there are id, key, size, x, n, t\)"
refused 'SELECT id FROM sample' "no such table: sample \(the table is 'samples'\)"
refused 'SELEC id' 'near "SELEC": syntax error'
refused "n = 1" 'near "n": syntax error'
is "hint: a whole SELECT is wanted, such as \"SELECT key FROM samples WHERE label_name = 'cat'\"" \
	"$(tail -n 1 <<<"$err")" "an expression: what is wanted"
refused 'SELECT id FROM samples WHERE' 'incomplete input'
refused '' "one SELECT, and nothing else"
refused 'SELECT 1; SELECT 2' "one SELECT, and nothing else"
refused 'EXPLAIN SELECT 1' "one SELECT, and nothing else"
refused 'SELECT id FROM samples WHERE key = :key' "has no parameters"
refused 'SELECT id FROM samples WHERE n = ?1' "has no parameters"
refused 'DELETE FROM samples' "may not be modified"
refused 'INSERT INTO samples(id) VALUES (7)' "a SELECT, and nothing else"
refused 'CREATE TABLE t(a)' "a SELECT, and nothing else"
refused 'PRAGMA cache_size' "a SELECT, and nothing else"
refused "ATTACH '$tmp/other.db' AS other" "a SELECT, and nothing else"
refused "SELECT load_extension('x')" "not authorized"
ok "and nothing is made" test ! -e other.db
run stele query --ids small 'SELECT key FROM samples'
is 2 "$status" "--ids without a column id"
ok "says so" grep -q "the result has no column 'id'" <<<"$err"
for id in NULL "'7'" 40.5 -1; do
	run stele query --ids small "SELECT $id AS id FROM samples"
	is "2  stele: 'id' of row 1 is none: ids are integers from 0 on" "$status $out $err" \
		"--ids of $id"
done
run stele query --ids --csv small 'SELECT id FROM samples'
is 2 "$status" "two formats"
run stele query small
is 2 "$status" "no SELECT"
run stele query small 'SELECT sum(9223372036854775807) FROM samples'
is 2 "$status" "what cannot be computed"
ok "says why" grep -q "integer overflow" <<<"$err"
run stele query small@none 'SELECT 1'
is 1 "$status" "no such snapshot"

mkdir none
: >none/libsqlite3.so.0
run env LD_LIBRARY_PATH="$tmp/none" stele query small 'SELECT 1'
is 1 "$status" "without SQLite"
ok "is said" grep -qE "^stele: cannot load .*libsqlite3" <<<"$err" ||
	diag "$err"
run env LD_LIBRARY_PATH="$tmp/none" stele ls small
is 0 "$status" "which all else does without"

# ---- damage, signals ----

# A text that is damaged ends the query; columns do not care.
stele query --json image@d 'SELECT id, text FROM samples LIMIT 1' >first
cp image hurt
offset=$(grep -abo 'zebrazebra' hurt | head -n 1 | cut -d: -f1)
printf 'Z' | dd of=hurt bs=1 seek="$offset" conv=notrunc status=none
run stele query hurt@c 'SELECT count(*) FROM samples WHERE text IS NULL'
is 3 "$status" "a damaged sample"
ok "is named" grep -qE "stele: .*sample [0-9]+" <<<"$err" || diag "$err"
run stele query hurt@c 'SELECT count(*) FROM samples WHERE n > 7'
is 0 "$status" "whose scalars are still there"

timeout -s INT 1 stele query small 'WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c)
	SELECT count(*) FROM c' >/dev/null 2>&1
is 124 $? "an interrupt ends one that does not end"

done_testing
