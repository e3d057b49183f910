/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frame.c - how a page begins and ends: its style, what is shown, the figures that count
 *
 * Two columns of text at most, one on a phone. Colours are variables, and change with what the
 * browser prefers; those of the drawings can be told apart by the colour-blind (after Okabe
 * and Ito) and by their lightness.
 */
#include "view/view.h"

#include <inttypes.h>
#include <string.h>

#include "text.h"

static const char style[] =
	":root{color-scheme:light dark;--paper:#fdfdfc;--ink:#1b1f23;--soft:#59626c;"
	"--line:#d6dade;--void:#eef0f2;--own:#0a62a3;--other:#93bfdf;--unused:#d8801f;"
	"--tree:#0b8a66;--meta:#4a4f55;--bar:#4d86b3}\n"
	"@media(prefers-color-scheme:dark){:root{--paper:#15181b;--ink:#e4e7ea;--soft:#9aa4ae;"
	"--line:#333a41;--void:#22272c;--own:#5fa8dd;--other:#2f5677;--unused:#d99545;"
	"--tree:#3fb08b;--meta:#a9b1b9;--bar:#5b93bf}}\n"
	"*{box-sizing:border-box}\n"
	"html{-webkit-text-size-adjust:100%}\n"
	"body{margin:0 auto;padding:1.75rem 1.25rem 3rem;max-width:70rem;background:var(--paper);"
	"color:var(--ink);font:15px/1.5 system-ui,-apple-system,\"Segoe UI\",Roboto,"
	"\"DejaVu Sans\",sans-serif;font-variant-numeric:tabular-nums;overflow-wrap:anywhere}\n"
	"h1{margin:0;font-size:1.6rem;line-height:1.25;font-weight:600}\n"
	"h2{margin:0 0 .25rem;font-size:1.1rem;font-weight:600}\n"
	"h3{margin:0;font-size:.95rem;font-weight:600}\n"
	"section{margin-top:2.25rem;padding-top:1rem;border-top:1px solid var(--line)}\n"
	"p{margin:.25rem 0 0}\n"
	"code,.mono{font:.82rem/1.45 ui-monospace,SFMono-Regular,Menlo,\"DejaVu Sans Mono\","
	"monospace}\n"
	".note,.soft,dt,figcaption,.ticks,th{color:var(--soft)}\n"
	".note{font-size:.85rem;max-width:46rem}\n"
	"dl{display:grid;grid-template-columns:repeat(auto-fit,minmax(7.5rem,1fr));"
	"gap:.9rem 1.5rem;margin:1.25rem 0 0}\n"
	"dt{font-size:.8rem}dd{margin:0}\n"
	"header dl{grid-template-columns:repeat(4,1fr)}"
	".key dd{font-size:1.15rem;font-weight:600}\n"
	"svg{display:block;width:100%;background:var(--void)}\n"
	"svg.strip{height:2rem}svg.row{height:.85rem}svg.zoom{height:1rem;background:none}\n"
	"svg.runs{height:6.5rem}svg.bars{height:9rem}svg.small{height:3.25rem}\n"
	".own{fill:var(--own)}.other{fill:var(--other)}.unused{fill:var(--unused)}"
	".tree{fill:var(--tree)}.meta,.fixed{fill:var(--meta)}.bar{fill:var(--bar)}"
	".zoomed{fill:var(--void);stroke:var(--line);vector-effect:non-scaling-stroke}\n"
	".own,.other,.unused,.tree,.meta,.fixed{stroke-width:1px;vector-effect:non-scaling-stroke}"
	".own{stroke:var(--own)}.other{stroke:var(--other)}.unused{stroke:var(--unused)}"
	".tree{stroke:var(--tree)}.meta,.fixed{stroke:var(--meta)}\n"
	".cut,.grid{fill:none;stroke:var(--paper);stroke-width:1px;"
	"vector-effect:non-scaling-stroke}.grid{stroke:var(--line)}\n"
	".ticks{position:relative;height:1.35rem;font-size:.75rem}\n"
	".ticks span{position:absolute;transform:translateX(-50%);white-space:nowrap}\n"
	".ticks .first{transform:none}.ticks .last{transform:translateX(-100%)}\n"
	".plot{position:relative;margin-top:.5rem}\n"
	".plot>i{position:absolute;left:.25rem;transform:translateY(50%);padding:0 .2rem;"
	"background:var(--void);font-style:normal;font-size:.7rem;line-height:1;"
	"color:var(--soft)}\n"
	"figure{margin:1rem 0 0}figcaption{font-size:.8rem;margin-bottom:.3rem}\n"
	"table{border-collapse:collapse;width:100%;margin-top:1rem;font-size:.88rem}\n"
	"th,td{padding:.3rem .6rem .3rem 0;text-align:left;vertical-align:baseline;"
	"font-weight:400;border-bottom:1px solid var(--line)}\n"
	"th{font-size:.8rem}th.n,td.n{text-align:right;white-space:nowrap}"
	"th:last-child,td:last-child{padding-right:0}\n"
	"td.what{padding-left:1.3rem;text-indent:-1.3rem}\n"
	".swatch{display:inline-block;width:.8rem;height:.8rem;margin-right:.5rem;"
	"border:1px solid var(--line);vertical-align:-.08rem;background:var(--void)}\n"
	".swatch.own{background:var(--own)}.swatch.other{background:var(--other)}"
	".swatch.unused{background:var(--unused)}.swatch.tree{background:var(--tree)}"
	".swatch.meta,.swatch.fixed{background:var(--meta)}.swatch.never{background:none}\n"
	"details{margin-top:.75rem;font-size:.88rem}summary{cursor:pointer;color:var(--soft)}\n"
	".cards{columns:2 22rem;column-gap:2.5rem}"
	".cards>div{break-inside:avoid;padding-top:1rem}\n"
	".classes{display:grid;grid-template-columns:minmax(4rem,10rem) 1fr auto;"
	"gap:.15rem .75rem;align-items:center;margin-top:.5rem;font-size:.85rem}\n"
	".classes b{display:block;height:.7rem;background:var(--bar);min-width:1px}\n"
	".classes span:nth-child(3n){text-align:right}.classes .all{grid-column:1/-1}\n"
	".pictures{display:grid;grid-template-columns:repeat(auto-fill,minmax(7.5rem,1fr));"
	"gap:1rem;margin-top:1rem}\n"
	".pictures figure{margin:0;min-width:0}.pictures figcaption{margin:.3rem 0 0;"
	"font-size:.72rem;line-height:1.35}\n"
	".pictures img{display:block;width:100%;aspect-ratio:1;object-fit:contain;"
	"background:var(--void)}\n"
	".snapshot{margin-top:1.1rem}.snapshot .line{display:flex;flex-wrap:wrap;"
	"justify-content:space-between;gap:0 1.5rem;margin-bottom:.25rem;font-size:.85rem}\n"
	".snapshot .mark{margin-left:.5rem;padding:0 .4rem;border:1px solid var(--line);"
	"font-size:.72rem;font-weight:400;color:var(--soft)}\n"
	"footer{margin-top:2.5rem;font-size:.8rem;color:var(--soft)}\n"
	"@media(max-width:34rem){body{padding:1.25rem 1rem 2rem}"
	"dl,header dl{grid-template-columns:1fr 1fr;gap:.75rem 1rem}"
	".pictures{grid-template-columns:repeat(3,1fr);gap:.75rem .6rem}"
	"th,td{padding-right:.4rem}}\n";

/* The label, or the target without its snapshot, which stands beside it. */
static void put_name(const struct view *view)
{
	const char *name = *view->about.label ? view->about.label : view->target;
	size_t size = strlen(name), tail = strlen(view->info.snapshot) + 1;

	if (name == view->target && size > tail && name[size - tail] == '@' &&
	    !strcmp(name + size - tail + 1, view->info.snapshot))
		size -= tail;
	page_bytes(view->to, name, size);
}

static void head(const struct view *view)
{
	fputs("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
	      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
	      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
	      "img-src data:; style-src 'unsafe-inline'\">\n"
	      PAGE_MARK "\n<title>", view->to);
	put_name(view);
	fprintf(view->to, " @ %s</title>\n<style>\n%s</style>\n</head>\n<body>\n",
		view->info.snapshot, style);
}

static void title(const struct view *view)
{
	char text[TEXT_HEX_SIZE] = "", a[TEXT_SIZE];

	fputs("<header>\n<h1>", view->to);
	put_name(view);
	fprintf(view->to, " <span class=soft>@ %s</span></h1>\n<p class=soft>",
		view->info.snapshot);
	page_bytes(view->to, view->target, strlen(view->target));
	fprintf(view->to, ", committed %s</p>\n", text_time(a, view->info.time));
	fprintf(view->to, "<p class=mono>sha256:%s</p>\n",
		text_hex(text, view->info.digest, sizeof(view->info.digest)));
}

void view_head(struct view *view)
{
	const struct stele_dataset_info *info = &view->info;
	char a[TEXT_SIZE], b[TEXT_SIZE], text[2 * TEXT_SIZE + 8];

	head(view);
	title(view);
	fputs("<dl class=key>\n", view->to);
	page_item(view->to, "Samples", text_count(a, info->sample_count));
	page_item(view->to, "Sample bytes", text_size(a, info->payload_size));
	page_item(view->to, "Slots", text_size(a, info->slots_size));
	page_item(view->to, "Padding",
		  text_share(a, info->padding_size, info->slots_size));
	fputs("</dl>\n<dl>\n", view->to);
	snprintf(text, sizeof(text), "%s of %s", text_size(a, view->about.used_size),
		 text_size(b, view->about.image_size));
	page_item(view->to, "Used of the target", text);
	snprintf(text, sizeof(text), "%s in %s", text_count(a, info->run_count),
		 text_counted(b, info->segment_count, "segment"));
	page_item(view->to, "Runs", text);
	page_item(view->to, "Run table", text_size(a, info->table_size));
	page_item(view->to, "Granule", text_size(a, info->granule));
	page_item(view->to, "Deleted samples", text_count(a, info->deleted_count));
	page_item(view->to, "Snapshots", text_count(a, view->snapshots.count));
	page_item(view->to, "Generation", text_count(a, view->about.generation));
	page_item(view->to, "Mountable as EROFS",
		  view->about.tree_mountable ? "yes" : "no");
	fputs("</dl>\n</header>\n", view->to);
}

void view_foot(struct view *view)
{
	char uuid[TEXT_HEX_SIZE];

	fprintf(view->to, "<footer>Image %s, drawn by stele %s.</footer>\n</body>\n</html>\n",
		text_uuid(uuid, view->about.uuid), stele_version());
}
