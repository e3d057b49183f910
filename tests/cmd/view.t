#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# view.t - a page that says what du and info do, holds no script, and fits a phone
. "${0%/*}/../tap.sh"

requires chromium --version
browser=$PWD/tests/cmd/browser.py
cd "$tmp" || bail "cd"

# One pixel each, as real encoders write it.
jpeg=/9j/4AAQSkZJRgABAQEASABIAAD/2wBDAAMCAgICAgMCAgIDAwMDBAYEBAQEBAgGBgUGCQgKCgkICQkKDA8MCgsO\
CwkJDRENDg8QEBEQCgwSExIQEw8QEBD/yQALCAABAAEBAREA/8wABgAQEAX/2gAIAQEAAD8A0s8g/9k=
png=iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC
webp=UklGRhoAAABXRUJQVlA4TA0AAAAvAAAAEAcQERGIiP4HAA==

# Names that would be markup, in each place where the image has a name of its own.
class='"><img src=x onerror=alert(1)>'
mkdir -p src/plain "src/$class" src/$'\xff\xfe'
for i in {01..30}; do
	base64 -d <<<"$png" >"src/plain/$i.png"
	{ base64 -d <<<"$png" && head -c $((RANDOM % 9000)) /dev/zero; } >"src/$class/$i"
done
base64 -d <<<"$jpeg" >"src/plain/a.jpg"
base64 -d <<<"$webp" >"src/plain/b.webp"
base64 -d <<<"$jpeg" >src/$'\xff\xfe/<script>alert(1)<\xe2\x80\xae'
echo '<svg onload="alert(1)">' >src/plain/vector.png
must stele build -q --size=64M --time=1 --label="<i>'label'" src image@v1
mkdir more
for i in {1..40}; do head -c 50000 /dev/urandom >"more/$i"; done
must stele append -q --label-from=none more image@v2 --time=2 \
	--note='</p><script>alert(2)</script>&amp;'
must stele snapshot create image@v3 --delete 40 --time=3

run stele view image@v2 --images=1000 --html=page.html
is "0  " "$status $out $err" "a page, and nothing else"
is "page.html" "$(ls page.html*)" "no other file"
run stele view image@v2 --images=1000 --html -
ok "on stdout, the same" cmp -s "$tmp/.out" page.html
is "data:image/jpeg data:image/png data:image/webp" \
	"$(grep -oE 'src="[^;]*' page.html | cut -c6- | sort -u | xargs)" "pictures of three kinds"
ok "no markup of the image's" not grep -qiE '<(script|img src=x|svg onload|i>.label)' page.html
ok "no address" not grep -qiE '(https?:)?//[a-z]|url\(|@import|href' page.html

must stele build -q --time=1 src/plain plain.stele@a
is "<title>plain.stele @ a</title>" \
	"$(stele view plain.stele@a --html=- | grep -o '<title>.*</title>')" \
	"the snapshot is named once"

# numbers NAME: what du says of a snapshot, as the page does
numbers() {
	stele du image | awk -v name="$1" '$NF == name { print $1, $2, "alone,", $3, $4, "shared" }'
}
python3 "$browser" page.html "$tmp" >looks || bail "the browser"
is 4 "$(wc -l <looks)" "on a phone and a desk, in light and dark"
is "[] [] [] [] 0 0 0" "$(jq -r '"\(.requests) \(.console) \(.overflow) \(.ticks) \(.scroll) " +
	"\(.broken) \(.scripts)"' looks | sort -u)" \
	"nothing asked for, said, cut off, broken or run"
is "2 2" "$(jq -s 'map(.background) | group_by(.)[] | length' looks | xargs)" \
	"two backgrounds"
is 63 "$(jq -s '.[0].images' looks)" "as many pictures as there are"
jq -r -s '.[0].text' looks >text
for name in v1 v2 v3; do
	ok "$name: the bytes of du" grep -qF "$(numbers "$name")" text
done
ok "the label, to the letter" grep -qF "<i>'label' @ v2" text
ok "the note" grep -qF '</p><script>alert(2)</script>&amp;' text
ok "the class" grep -qxF "$class" text
ok "bytes that are no text" grep -qF '\xff\xfe/<script>alert(1)<\xe2\x80\xae' text
ok "samples" grep -qx "$(stele ls image@v2 | wc -l)" text
ok "digest" grep -q "sha256:$(stele info --json image@v2 | jq -r .snapshot.digest)" text
python3 -c 'import sys; d = open(sys.argv[1], "rb").read(); d.decode()' page.html
is 0 $? "the page is UTF-8"

is 24 "$(stele view image@v1 --html=- | grep -c '<img')" "24 by default"
is 0 "$(stele view image@v1 --images=0 --html=- | grep -c '<img')" "or none"

# Scalars of a table, and of one value only.
printf '%s\n' 'key,n,x,same' 'a,-3,0.5,7' 'b,9,nan,7' 'c,2,-1e300,7' 'd,2,1e300,7' >t.csv
must stele build -q t.csv table
must stele view table --html table.html
python3 "$browser" table.html >looks || bail "the browser"
jq -r -s '.[0].text' looks | tr -d ' ' | paste -sd ' ' >text
ok "least and largest of a number" grep -qE 'Smallest *-3 *Largest *9 *Distinctvalues *3' text
ok "those of what has no number, too" grep -qE 'Smallest *-1e\+300 *Largest *1e\+300' text
ok "which is counted" grep -qE 'Nonumber,orinfinite *1' text
is "[] []" "$(jq -r '"\(.overflow) \(.console)"' looks | sort -u)" "it fits as well"

mkdir empty
must stele build -q --allow-empty empty void
run stele view void --html void.html
is 0 "$status" "without a sample there is a page"

cp image copy
for file in image copy; do
	run stele view image@v2 --html="$file"
	is "1 " "$status $out" "$file: refused"
	ok "$file: said" grep -q "cannot write '$file': .*holds an image" <<<"$err"
	ok "$file: still there" cmp -s image copy
done
run stele tune --quick --svg=image image@v2
is 1 "$status" "nor does tune draw over one"
echo mine >notes
run stele view image@v2 --html=notes
is "1 mine" "$status $(cat notes)" "a file of another kind stays"
ok "that is said" grep -qxF "stele: cannot write 'notes': it exists, and holds something else" \
	<<<"$err" || diag "$err"
run stele view image@v1 --html=page.html
is 0 "$status" "an earlier page is replaced" || diag "$err"
: >notes
run stele view image@v1 --html=notes
is 0 "$status" "and an empty file" || diag "$err"
run stele view image@v1 --html=none/
ok "a directory that is not there" grep -qxF \
	"stele: cannot create 'none/': no directory 'none'" <<<"$err" || diag "$err"
run stele view image@v2 --html=none/page
is 1 "$status" "no such directory"
run stele view image@v2
is 2 "$status" "no file"
run stele view --html=x none
is "1 no" "$status $([ -e x ] && echo yes || echo no)" "no target, and no page"

# A picture whose bytes changed: what is left is shown.
place=$(grep -abo WEBPVP8L copy | head -n 1 | cut -d: -f1)
printf X | must dd of=copy bs=1 seek=$((place + 9)) conv=notrunc status=none
run stele view copy@v1 --images=1000 --html=damaged.html
is 3 "$status" "a damaged sample is status 3"
ok "said" grep -q "^stele: cannot read sample" <<<"$err"
ok "the others are there" test "$(grep -c '<img' damaged.html)" -ge 60

done_testing
