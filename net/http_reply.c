/* net/http_reply.c - responses: the head that every one of them has, and problems (RFC 9457). */
#include "net/http.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

const char *http_status_text(int status)
{
	switch (status) {
	case 200: return "OK";
	case 201: return "Created";
	case 202: return "Accepted";
	case 204: return "No Content";
	case 304: return "Not Modified";
	case 400: return "Bad Request";
	case 401: return "Unauthorized";
	case 403: return "Forbidden";
	case 404: return "Not Found";
	case 405: return "Method Not Allowed";
	case 408: return "Request Timeout";
	case 409: return "Conflict";
	case 410: return "Gone";
	case 411: return "Length Required";
	case 413: return "Content Too Large";
	case 414: return "URI Too Long";
	case 415: return "Unsupported Media Type";
	case 417: return "Expectation Failed";
	case 421: return "Misdirected Request";
	case 422: return "Unprocessable Content";
	case 429: return "Too Many Requests";
	case 431: return "Request Header Fields Too Large";
	case 500: return "Internal Server Error";
	case 501: return "Not Implemented";
	case 503: return "Service Unavailable";
	case 504: return "Gateway Timeout";
	case 505: return "HTTP Version Not Supported";
	case 507: return "Insufficient Storage";
	default:  return "Unknown";
	}
}

/* ── Date ── */

/* Of the worker: responses are written where nothing but the output is at hand. */
static _Thread_local char date[40];
static _Thread_local uint64_t date_second;

void http_clock(uint64_t wall_ms)
{
	time_t second = (time_t)(wall_ms / 1000);
	struct tm utc;

	if ((uint64_t)second == date_second)
		return;
	date_second = (uint64_t)second;
	date[strftime(date, sizeof date, "Date: %a, %d %b %Y %H:%M:%S GMT\r\n", gmtime_r(&second, &utc))] = 0;
}

/* ── responses ── */

static inline void put(struct out *o, const char *text)
{
	out_bytes(o, text, strlen(text));
}

static const char *connection(uint8_t proto)
{
	if (proto & HTTP_CLOSE)
		return "Connection: close\r\n";
	return proto & HTTP_1_0 ? "Connection: keep-alive\r\n" : "";
}

static void put_number(struct out *o, uint64_t n)
{
	char digits[20], *at = digits + sizeof digits;

	do {
		*--at = (char)('0' + n % 10);
		n /= 10;
	} while (n);
	out_bytes(o, at, (size_t)(digits + sizeof digits - at));
}

enum { HEAD_BYTES = 512 };         /* of most heads: the output grows once */

/* Up to where the length of the body is said. */
static void begin(struct out *o, int status, const char *content_type)
{
	put(o, "HTTP/1.1 ");
	put_number(o, (uint64_t)status);
	put(o, " ");
	put(o, http_status_text(status));
	put(o, "\r\n");
	put(o, date);
	put(o, connection(o->proto));
	if (content_type) {
		put(o, "Content-Type: ");
		put(o, content_type);
		put(o, "\r\n");
	}
}

static void end(struct out *o, const char *headers)
{
	put(o, "X-Content-Type-Options: nosniff\r\nCross-Origin-Resource-Policy: same-origin\r\n");
	if (!*headers || !strstr(headers, "Cache-Control:"))
		put(o, "Cache-Control: no-store\r\n");
	if (!*headers || !strstr(headers, "Content-Security-Policy:"))
		put(o, "Content-Security-Policy: default-src 'none'; frame-ancestors 'none'\r\n");
	put(o, headers);
	put(o, "\r\n");
}

void http_reply(struct out *o, int status, const char *content_type, const char *headers, const void *body, size_t len)
{
	(void)out_room(o, HEAD_BYTES + len);
	begin(o, status, content_type);
	if (status != 204 && status != 304) {
		put(o, "Content-Length: ");
		put_number(o, len);
		put(o, "\r\n");
	}
	end(o, headers);
	if (!(o->proto & HTTP_HEAD))
		out_bytes(o, body, len);
}

void http_stream(struct out *o, const char *content_type, const char *headers)
{
	begin(o, 200, content_type);
	end(o, headers);
}

/* ── problems ── */

/* Of a text that may hold anything: the inside of a JSON string. What is not ASCII is shown as '?'. */
static size_t escape(char *to, size_t room, const char *text)
{
	size_t at = 0;

	for (; *text && at + 2 < room; text++) {
		if (*text == '"' || *text == '\\')
			to[at++] = '\\';
		to[at++] = *text >= ' ' && *text <= '~' ? *text : '?';
	}
	to[at] = 0;
	return at;
}

void http_problem(struct out *o, int status, const char *code, const char *headers, const char *format, ...)
{
	char detail[HTTP_DETAIL_MAX + 1], shown[2 * HTTP_DETAIL_MAX + 2], body[sizeof shown + 256];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(detail, sizeof detail, format, args);
	va_end(args);
	(void)escape(shown, sizeof shown, detail);
	int len = snprintf(body, sizeof body,
			   "{\"type\":\"about:blank\",\"title\":\"%s\",\"status\":%d,\"detail\":\"%s\",\"code\":\"%s\"}\n",
			   http_status_text(status), status, shown, code);

	http_reply(o, status, "application/problem+json", headers, body, (size_t)len);
}
