/* names_test.c - worker 0's name stands for several addresses of its host, in a network of the
 * test's own. */
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>

#include "free_port.h"
#include "names.h"
#include "net/crew.h"

static const char *denied; /* why there is no network of its own */

/* The card lo gets a further address. */
static bool add_address(const char *card, const char *address) {
    struct ifreq r = {0};
    struct sockaddr_in *at = (struct sockaddr_in *)&r.ifr_addr;
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    snprintf(r.ifr_name, sizeof r.ifr_name, "%s", card);
    at->sin_family = AF_INET;
    inet_pton(AF_INET, address, &at->sin_addr);
    bool done = ioctl(fd, SIOCSIFADDR, &r) == 0 && ioctl(fd, SIOCGIFFLAGS, &r) == 0;
    r.ifr_flags |= IFF_UP;
    done = done && ioctl(fd, SIOCSIFFLAGS, &r) == 0;
    close(fd);
    return done;
}

static const char *make_network(void) {
    if (unshare(CLONE_NEWNET) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0)
        return "no network namespaces";
    if (!add_address("lo", "127.0.0.1") || !add_address("lo:1", "10.9.9.1") ||
        !add_address("lo:2", "10.9.9.2"))
        return "the network's addresses can't be set";
    return NULL;
}

static void check_doors(const char *host, const char *door, bool logged) {
    crew *c = crew_new(2, once);
    c->looks = c->bind_itself = true;
    c->host = host;
    crew_start(c);
    crew_wait(c);
    check_all_well(c);
    if (strncmp(reports[0].doors, door, strlen(door)) != 0)
        fail_msg("%s: worker 0 listens at %s, not at %s", host, reports[0].doors, door);
    if (logged)
        check_log(c, "is several of them, and some may lead nowhere");
    else
        assert_null(strstr(c->text, "all addresses"));
    free(c);
}

/* Others may reach worker 0 at any of its addresses. */
static void test_doors(void **state) {
    (void)state;
    if (denied) skip_because("names: %s", denied);
    check_doors("10.9.9.1+10.9.9.2", "0.0.0.0:", true);
    check_doors("192.0.2.1+10.9.9.2+10.9.9.1", "0.0.0.0:", true);
    check_doors("10.9.9.2+10.9.9.2", "10.9.9.2:", false);
    check_doors("127.0.1.1+10.9.9.1", "10.9.9.1:", false);
    check_doors("127.0.0.1", "127.0.0.1:", false);
}

int main(void) {
    denied = make_network();
    if (crew_set_up() != 0) return 1;
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_doors)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
