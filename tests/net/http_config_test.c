/* tests/net/http_config_test.c - POST /admin/config/reload: who may ask, and what comes of it; and clients of HTTP whose
 * accounts go while they are connected. */
#include "tests/net/http_kit.h"

#include <openssl/sha.h>

#define HEAD(more) "POST /admin/config/reload HTTP/1.1\r\nHost: localhost\r\n" more "Content-Length: 0\r\n\r\n"

static noh_account account(const char *name, int role, const char *secret)
{
	noh_account a = { .name = name, .role = role };

	SHA256((const unsigned char *)secret, strlen(secret), a.token);
	return a;
}

/* The server's own routes. */
static void open_own(struct http_wire *h, noh_listen_options l)
{
	noh_options o = kit_options(2);

	*h = (struct http_wire){ .w.box = kit_open(&o, TYPES(noh_counter_type(), &later_type)) };
	wire_socket_path(h->w.path);
	wire_socket_path(h->resp);
	EXPECT_EQ(http_listen(h, l), NOH_OK);
	EXPECT_EQ(noh_start(h->w.box), NOH_OK);
}

static atomic_u64 asked;
static void on_reload(void *user, uint64_t request)
{
	(void)user;
	store_seq_cst(&asked, request);
}

static bool is_asked(void *unused)
{
	(void)unused;
	return load_seq_cst(&asked) != 0;
}

/* One request on fd, which the program answers so. */
static void reload(struct http_wire *h, int fd, const char *request, bool good, const char *findings, struct response *r)
{
	store_seq_cst(&asked, 0);
	(void)say(fd, request);
	EXPECT(test_wait_until(is_asked, NULL, SOON));
	EXPECT_EQ(noh_reloaded(h->w.box, load_seq_cst(&asked), good, findings), NOH_OK);
	EXPECT(hear_response(fd, r, false));
}

static void a_reload_says_what_changed_and_what_waits(void)
{
	static const char findings[] = "warning\tso \"so\"\nchanged\tnet.timeout\t30s\t\\5s\t/etc/x:3\n"
				       "restart\tnet.io\tauto\tepoll\tNOH_NET_IO\nchanged\tusers.file\t\t\xc3\xa4\t--users-file\n";

	FOR_IO(io) {
		struct http_wire h;
		struct response r;

		open_own(&h, (noh_listen_options){ .io = io, .on_reload = on_reload });
		int fd = dial(&h.w);

		reload(&h, fd, HEAD(""), true, findings, &r);
		EXPECT(r.status == 200 && strstr(r.head, "Content-Type: application/json\r\n"));
		EXPECT(test_text(r.body, "{\"reloaded\":true,\"changed\":[{\"setting\":\"net.timeout\",\"old\":\"30s\",\"new\":\"\\u005c5s\","
				 "\"where\":\"/etc/x:3\"},{\"setting\":\"users.file\",\"old\":\"\",\"new\":\"\xc3\xa4\",\"where\":\"--users-file\"}],"
				 "\"restart\":[{\"setting\":\"net.io\",\"old\":\"auto\",\"new\":\"epoll\",\"where\":\"NOH_NET_IO\"}],"
				 "\"warnings\":[\"so \\u0022so\\u0022\"]}\n", __FILE__, __LINE__));
		reload(&h, fd, HEAD("Accept: text/plain\r\n"), true, findings, &r);
		EXPECT(r.status == 200 && test_text(r.body, findings, __FILE__, __LINE__));
		reload(&h, fd, HEAD("Accept: */*\r\n"), true, "", &r);
		EXPECT(test_text(r.body, "{\"reloaded\":true,\"changed\":[],\"restart\":[],\"warnings\":[]}\n", __FILE__, __LINE__));
		(void)close(fd);
		wire_end(&h.w);
	}
}

static void a_reload_that_failed_lists_every_error(void)
{
	struct http_wire h;
	struct response r;

	open_own(&h, (noh_listen_options){ .on_reload = on_reload });
	int fd = dial(&h.w);

	reload(&h, fd, HEAD(""), false, "error\tf:1: no\nwarning\tand so\nerror\tf:2: never\n", &r);
	EXPECT(r.status == 422 && strstr(r.head, "Content-Type: application/problem+json\r\n"));
	EXPECT(strstr(r.body, "\"code\":\"bad_settings\"") && strstr(r.body, "\"errors\":[\"f:1: no\",\"f:2: never\"]}\n"));
	reload(&h, fd, HEAD("Accept: text/plain\r\n"), false, "error\tf:1: no\n", &r);
	EXPECT(r.status == 422 && test_text(r.body, "error\tf:1: no\n", __FILE__, __LINE__));
	(void)close(fd);
	wire_end(&h.w);
}

static void only_an_admin_may_ask_for_a_reload_and_never_by_get(void)
{
	struct http_wire h;

	open_own(&h, (noh_listen_options){ .on_reload = on_reload });
	const noh_account list[] = { account("dev", NOH_DEVELOPER, "d"), account("root", NOH_ADMIN, "r") };

	EXPECT_EQ(noh_set_accounts(h.w.box, list, 2), NOH_OK);
	store_seq_cst(&asked, 0);
	EXPECT_ONCE(&h.w, HEAD(""), 401, "no_token");
	EXPECT_ONCE(&h.w, HEAD("Authorization: Bearer d\r\n"), 403, "needs the role admin");
	EXPECT_ONCE(&h.w, "GET /admin/config/reload HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer r\r\n\r\n", 405, "POST");
	EXPECT_EQ(load_seq_cst(&asked), 0);
	wire_end(&h.w);
}

static void a_program_without_settings_says_so(void)
{
	struct http_wire h;

	open_own(&h, (noh_listen_options){ .max_args = 100 });
	EXPECT_ONCE(&h.w, HEAD(""), 501, "no_settings");
	wire_end(&h.w);
}

static void a_client_of_http_whose_account_goes_is_closed_and_others_stay(void)
{
	FOR_IO(io) {
		struct http_wire h;

		open_own(&h, (noh_listen_options){ .io = io, .on_reload = on_reload });
		const noh_account both[] = { account("ann", NOH_ADMIN, "a"), account("bob", NOH_ADMIN, "b") };
		uint64_t requests[2];
		int fd[3];

		EXPECT_EQ(noh_set_accounts(h.w.box, both, 2), NOH_OK);
		for (int i = 0; i < 3; i++)
			fd[i] = dial(&h.w);
		for (int i = 0; i < 2; i++) {            /* ann and bob wait for an answer; the third is nobody */
			store_seq_cst(&asked, 0);
			(void)say(fd[i], i ? HEAD("Authorization: Bearer b\r\n") : HEAD("Authorization: Bearer a\r\n"));
			EXPECT(test_wait_until(is_asked, NULL, SOON));
			requests[i] = load_seq_cst(&asked);
		}
		(void)say(fd[2], "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
		EXPECT_RESPONSE(fd[2], 200, "ok");
		EXPECT_EQ(noh_set_accounts(h.w.box, both, 1), NOH_OK);
		EXPECT(hears_the_end(fd[1]));
		(void)say(fd[2], "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
		EXPECT_RESPONSE(fd[2], 200, "ok");
		EXPECT(comes_to(&h.w, CONNECTIONS, 2));
		for (int i = 0; i < 2; i++)
			EXPECT_EQ(noh_reloaded(h.w.box, requests[i], true, ""), NOH_OK);
		EXPECT_RESPONSE(fd[0], 200, "\"reloaded\":true");
		for (int i = 0; i < 3; i++)
			(void)close(fd[i]);
		EXPECT(comes_to(&h.w, CONNECTIONS, 0));
		wire_end(&h.w);
	}
}

TEST_MAIN(
	TEST(a_reload_says_what_changed_and_what_waits, "CF-20"),
	TEST(a_reload_that_failed_lists_every_error, "CF-21"),
	TEST(only_an_admin_may_ask_for_a_reload_and_never_by_get),
	TEST(a_program_without_settings_says_so),
	TEST(a_client_of_http_whose_account_goes_is_closed_and_others_stay))
